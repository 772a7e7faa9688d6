"""glibc's allocator, told to give memory back: what one large request took is not to stay with the process."""

import ctypes
import sys

_M_TRIM_THRESHOLD = -1
_M_MMAP_THRESHOLD = -3
_M_ARENA_MAX = -8

# Larger blocks are mapped on their own, and unmapped when they are freed. By default the bound grows with each of them.
_MAPPED_BYTES = 1024 * 1024
_KEPT_BYTES = 16 * 1024 * 1024
_ARENAS = 2


def give_memory_back() -> None:
    """Set the allocator of this process so; without effect where it is not glibc's."""
    if not sys.platform.startswith("linux"):
        return
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is None:  # musl
        return
    for parameter, value in (
        (_M_MMAP_THRESHOLD, _MAPPED_BYTES),
        (_M_TRIM_THRESHOLD, _KEPT_BYTES),
        (_M_ARENA_MAX, _ARENAS),
    ):
        mallopt(parameter, value)
