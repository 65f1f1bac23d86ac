"""By what the processes of an attempt are known: an entry of their environment.

A command's bears its attempt, a worker's the worker, whose attempts change.
"""

from __future__ import annotations

from pathlib import Path


def owner_of(store: str, node: str, state_dir: Path) -> str:
    """Who has started them. A copy of a store has its id and its nodes, and lies elsewhere."""
    place = state_dir.stat()
    return f"{store}.{node}.{place.st_dev:x}-{place.st_ino:x}"


def command_mark(name: str) -> str:
    """`name` is its attempt, JOB.LEASE, or that of a hook's command; so is its cgroup called."""
    return f"REDRIVE_ATTEMPT={name}"


def worker_mark(worker: str) -> str:
    return f"REDRIVE_WORKER={worker}"


def mark_in(cgroup: str) -> str:
    """What is borne by those for whom a cgroup of that name was made."""
    kind, _, worker = cgroup.partition(".")
    return worker_mark(worker) if kind == "worker" else command_mark(cgroup)
