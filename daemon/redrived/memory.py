"""The C library's memory, kept as small as what is in use.

glibc gives each thread a heap of its own, which never shrinks below what that thread has once
needed at a time, and learns from each large block to keep larger ones. So a daemon with a dozen
threads would grow for a long while under load that never changes, and for ever after a burst.
Other C libraries have no such heaps, and none of these functions.
"""

from __future__ import annotations

import asyncio
import ctypes

EVERY = 60.0  # seconds
LARGE = 1024 * 1024  # bytes of a block that is given back when it is free, and of what may lie idle

# Of glibc's <malloc.h>.
_TRIM_THRESHOLD = -1
_MMAP_THRESHOLD = -3
_ARENA_MAX = -8

_libc = ctypes.CDLL(None)


def set_up() -> None:
    """One heap for all threads; to be called before there are any."""
    if hasattr(_libc, "mallopt"):
        _libc.mallopt(_ARENA_MAX, 1)
        _libc.mallopt(_TRIM_THRESHOLD, LARGE)
        _libc.mallopt(_MMAP_THRESHOLD, LARGE)


async def give_back() -> None:
    """What lies between blocks that are in use; in a thread, for after a burst it takes a while."""
    if hasattr(_libc, "malloc_trim"):
        await asyncio.to_thread(_libc.malloc_trim, 0)
