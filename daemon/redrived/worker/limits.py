"""The limits of a task, around one job in a process that it does not have for itself.

Only soft limits are set, so that all is as before when the end is told. A nice value cannot
be taken back without privileges: the daemon sends the worker home after such a job.
"""

from __future__ import annotations

import os
import resource
import sys
from collections.abc import Generator
from contextlib import contextmanager

_KINDS = {
    "memory": resource.RLIMIT_AS,
    "open_files": resource.RLIMIT_NOFILE,
    "cpu": resource.RLIMIT_CPU,
    "processes": resource.RLIMIT_NPROC,
    "file_size": resource.RLIMIT_FSIZE,
}


@contextmanager
def within(limits: dict[str, int]) -> Generator[None, None, None]:
    before = {kind: resource.getrlimit(kind) for name, kind in _KINDS.items() if name in limits}
    try:
        for name, kind in _KINDS.items():
            if name in limits:
                _limit(kind, limits[name], before[kind][1])
        if "nice" in limits:
            _be_nice(limits["nice"])
        yield
    finally:
        for kind, old in before.items():
            resource.setrlimit(kind, old)


def _limit(kind: int, value: int, hard: int) -> None:
    if kind == resource.RLIMIT_CPU:  # counted since the process began
        used = resource.getrusage(resource.RUSAGE_SELF)
        value += int(used.ru_utime + used.ru_stime) + 1
    soft = value if hard == resource.RLIM_INFINITY else min(value, hard)
    resource.setrlimit(kind, (soft, hard))


def _be_nice(value: int) -> None:
    try:
        os.nice(value)
    except PermissionError:
        print(f"nice = {value} is not allowed to this user", file=sys.stderr)
