"""Settings of glibc's allocator, so that memory of one large request returns to the system."""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

# Larger blocks are mapped on their own, and unmapped when they are freed; by default the bound grows with each of them.
# Each read of a TLS connection asks for 256 KiB, and is not to be mapped.
_MAPPED_BYTES = 1024 * 1024
_KEPT_BYTES = 32 * 1024 * 1024
_ARENAS = 2


_LIBRARY = ctypes.CDLL(None) if sys.platform.startswith("linux") else None


def bound_kept_memory() -> None:
    """Bound what the allocator of this process keeps for later; without effect where it is not glibc's."""
    mallopt = getattr(_LIBRARY, "mallopt", None)
    if mallopt is None:  # musl, or no Linux
        return
    for parameter, value in (
        (_M_MMAP_THRESHOLD, _MAPPED_BYTES),
        (_M_TRIM_THRESHOLD, _KEPT_BYTES),
        (_M_ARENA_MAX, _ARENAS),
    ):
        mallopt(parameter, value)


def give_memory_back() -> None:
    """Give back to the system what the allocator keeps now: a few milliseconds, in which other threads run."""
    malloc_trim = getattr(_LIBRARY, "malloc_trim", None)
    if malloc_trim is not None:
        malloc_trim(0)
