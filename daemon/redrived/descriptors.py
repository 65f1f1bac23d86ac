"""Descriptors: as many as the work needs, and always some for whoever comes to ask.

libzmq ends the whole process when somebody connects and there is none left for the connection
(ipc_listener.cpp takes EMFILE for a defect). So work leaves some, and connections leave a few.
"""

from __future__ import annotations

import os
from resource import RLIM_INFINITY, RLIMIT_NOFILE, getrlimit, setrlimit

EACH = 4  # of an attempt: its process, its two files, its socket for notices
OTHERS = 2048  # of clients, who may come all at once, of workers and the store
KEPT = 512  # that no work takes: more than one user has connections; half where there are few
LAST = 4  # the part of these that is for who connects until we send them away


def provide(attempts: int) -> None:
    """Let there be enough for so many attempts at once, as far as the hard limit goes.

    No more than that: programs inherit the limit, and some walk through all there could be.
    """
    soft, hard = getrlimit(RLIMIT_NOFILE)
    needed = OTHERS + EACH * attempts
    if hard != RLIM_INFINITY:
        needed = min(needed, hard)
    if soft != RLIM_INFINITY and soft < needed:
        setrlimit(RLIMIT_NOFILE, (needed, hard))


def are_scarce(opening: int = 0) -> bool:
    """Whether what is left is for others than attempts; so many may be opened any moment."""
    return _left() - opening <= _kept()


def are_nearly_gone() -> bool:
    """Whether even one connection more is too much."""
    return _left() <= _kept() // LAST


def _left() -> int:
    return _limit() - _taken()


def _taken() -> int:
    # Since Linux 6.2 the kernel says how many there are; before, they are counted.
    return os.stat("/proc/self/fd").st_size or len(os.listdir("/proc/self/fd"))


def _kept() -> int:
    return min(KEPT, _limit() // 2)


def _limit() -> int:
    soft, _ = getrlimit(RLIMIT_NOFILE)
    return 1 << 30 if soft == RLIM_INFINITY else soft
