"""The worker's own descriptors, out of the way of what handlers do to theirs.

A program gets the lowest number that is free. A handler that closes a file twice, or writes to
a number it has noted, hits whoever has that number by then: that must not be us.
"""

from __future__ import annotations

import fcntl
import mmap
import os

LOWEST = 200  # few programs have so many

_ADD_SEALS = 1033
_SEAL_FUTURE_WRITE = 0x10  # Linux 5.1; mappings made before stay as they are


def out_of_the_way(fd: int) -> int:
    """The same by a high number; the low one is closed."""
    high = high_copy(fd)
    os.close(fd)
    return high


def high_copy(fd: int) -> int:
    """By a low number where the limit of open files forbids a high one."""
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, LOWEST)
    except OSError:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3)


def map_shared(fd: int, size: int) -> mmap.mmap:
    """The memory behind a descriptor, which is closed: nobody else can write by one."""
    taken = _take_low_numbers(fd)
    try:
        mapped = mmap.mmap(fd, size)  # keeps a descriptor of its own, the lowest that is free
    finally:
        for low in taken:
            os.close(low)
    try:
        fcntl.fcntl(fd, _ADD_SEALS, _SEAL_FUTURE_WRITE)
    except OSError:
        pass  # an older kernel
    os.close(fd)
    return mapped


def _take_low_numbers(fd: int) -> list[int]:
    taken: list[int] = []
    try:
        while not taken or taken[-1] < LOWEST - 1:
            taken.append(os.dup(fd))
    except OSError:  # there are not so many for us; then one must be left
        for low in taken:
            os.close(low)
        return []
    return taken
