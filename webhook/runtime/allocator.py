"""Configure glibc's allocator so that it returns the memory of a large request to the system."""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

# Larger blocks get their own mapping and are unmapped when freed; by default the threshold grows with each of them.
# Each read of a TLS connection allocates 256 KiB, which must stay below the threshold.
_MAPPED_BYTES = 1024 * 1024
_KEPT_BYTES = 32 * 1024 * 1024
_ARENAS = 2


_LIBRARY = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def bound_kept_memory() -> None:
    """Limit the free memory that the allocator of this process keeps. Without glibc, this has no effect."""
    mallopt = getattr(_LIBRARY, "mallopt", None)
    if mallopt is None:  # musl, or not Linux
        return
    for parameter, value in (
        (_M_MMAP_THRESHOLD, _MAPPED_BYTES),
        (_M_TRIM_THRESHOLD, _KEPT_BYTES),
        (_M_ARENA_MAX, _ARENAS),
    ):
        mallopt(parameter, value)


def give_memory_back() -> None:
    """Return the allocator's free memory to the system, in a few milliseconds without Python's lock."""
    malloc_trim = getattr(_LIBRARY, "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
