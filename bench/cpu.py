"""What a process has spent."""

from __future__ import annotations

import psutil


def cpu_seconds(pid: int) -> float:
    """Of its own, so far; its children have theirs."""
    times = psutil.Process(pid).cpu_times()
    return times.user + times.system
