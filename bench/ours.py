"""redrived as the benches have it: two worker processes, SQLite, `durability = "full"`."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from support.daemon import Daemon

BASE = """
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 2
[store]
durability = "full"
keep = { done = "36500d" }
[pools.default]
path = ["."]
processes = 2
"""
NOOP = """
[tasks.noop]
python = "handlers:noop"
"""


def a_daemon(folder: Path, handlers: str, config: str) -> Daemon:
    """One that is still to be started, so that its store can be filled before."""
    (folder / "handlers.py").write_text(handlers)
    (folder / "state").mkdir(mode=0o700)
    return Daemon(folder, config, BASE)


def store_of(daemon: Daemon) -> Path:
    return daemon.folder / "state" / "redrive.db"


@contextmanager
def running(daemon: Daemon) -> Iterator[Daemon]:
    daemon.start()
    try:
        yield daemon
    finally:
        daemon.stop()
