from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from redrive.cli.main import run
from support.peer import Peer
from support.peer_thread import serving


class Said(Struct, frozen=True):
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def object(self) -> dict[str, Any]:
        (line,) = self.lines
        return line

    @property
    def lines(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.out.splitlines()]


Redrive = Callable[..., Said]


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        Path(name, "config.toml").write_text(
            f'[daemon]\nstate_dir = "{name}/state"\nruntime_dir = "{name}"\n'
        )
        yield Path(name)


@pytest.fixture
def peer(folder: Path) -> Iterator[Peer]:
    with serving(folder) as peer:
        yield peer


@pytest.fixture
def redrive(
    folder: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Redrive:
    """The command line as a script meets it: no terminal, a config found by its variable."""
    monkeypatch.setenv("REDRIVE_CONFIG", str(folder / "config.toml"))

    def call(*arguments: object) -> Said:
        code = run([str(argument) for argument in arguments])
        out, err = capfd.readouterr()
        return Said(code, out, err)

    return call
