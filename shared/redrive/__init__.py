"""redrive: run jobs that are allowed to fail.

Importing this package costs nothing to speak of: what is not asked for is not loaded. The
handler's half (`current_job`, `Permanent`, `Transient`, `Snooze`) is standard library only
and runs on Python 3.9; the rest needs the installed package.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from redrive._version import __version__

if TYPE_CHECKING:
    from redrive.blocking import Client
    from redrive.client import AsyncClient
    from redrive.errors import RedriveError
    from redrive.job import CurrentJob, current_job
    from redrive.outbox import AsyncOutbox, Outbox
    from redrive.outcomes import Cancelled, Permanent, Snooze, Transient

__all__ = [
    "AsyncClient",
    "AsyncOutbox",
    "Cancelled",
    "Client",
    "CurrentJob",
    "Outbox",
    "Permanent",
    "RedriveError",
    "Snooze",
    "Transient",
    "__version__",
    "current_job",
]

_HOMES = {
    "AsyncClient": "redrive.client",
    "AsyncOutbox": "redrive.outbox",
    "Cancelled": "redrive.outcomes",
    "Client": "redrive.blocking",
    "CurrentJob": "redrive.job",
    "Outbox": "redrive.outbox",
    "Permanent": "redrive.outcomes",
    "RedriveError": "redrive.errors",
    "Snooze": "redrive.outcomes",
    "Transient": "redrive.outcomes",
    "current_job": "redrive.job",
}


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module 'redrive' has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value
