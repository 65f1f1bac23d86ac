"""Processes that SIGKILL does not end."""

from __future__ import annotations

import os
import signal
import uuid
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from support.daemon import eventually

_FREEZER = Path("/sys/fs/cgroup/freezer")


class Ice:
    """Frozen by version 1 of cgroups, a process is deaf to SIGKILL, as in disk sleep."""

    def __init__(self) -> None:
        self._folder = _FREEZER / f"test-{uuid.uuid4()}"
        self._folder.mkdir()

    def freeze(self, pid: int) -> None:
        (self._folder / "cgroup.procs").write_text(str(pid))
        (self._folder / "freezer.state").write_text("FROZEN")

    def thaw(self) -> None:
        (self._folder / "freezer.state").write_text("THAWED")

    def remove(self) -> None:
        """With whom a test that failed has left in it."""
        self.thaw()
        for pid in self._frozen():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self._frozen(), "the ice is empty")
        self._folder.rmdir()

    def _frozen(self) -> list[int]:
        return [int(pid) for pid in (self._folder / "cgroup.procs").read_text().split()]


@contextmanager
def an_ice() -> Generator[Ice]:
    if not os.access(_FREEZER, os.W_OK):
        pytest.skip("needs root and the v1 freezer")
    made = Ice()
    try:
        yield made
    finally:
        made.remove()
