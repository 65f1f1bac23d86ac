"""`redrive up`: a daemon if none runs, then the console."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from typing import NamedTuple, NoReturn

import click

from redrive.cli.output import remark
from redrive.cli.settings import Settings
from redrive.cli.terminal import has_terminal
from redrive.cli.verb import Verb
from redrive.config import state_dir
from redrive.errors import DaemonUnreachable, RedriveError

_PATIENCE = 30.0  # seconds; a large store is ready in three
_POLL = 0.05


@click.command(cls=Verb, examples=["redrive up", "redrive --config ./config.toml up"])
@click.pass_obj
def up(settings: Settings) -> None:
    """Start the daemon if none runs, and open the console.

    The daemon goes to the background and logs to its state folder. Without a terminal, it
    runs in the foreground and there is no console.
    """
    if not has_terminal():
        _become(_daemon(settings))
    if not _answers(settings):
        wait_until_it_answers(settings, spawn_daemon(settings))
    open_console(settings)


def open_console(settings: Settings, *options: str) -> NoReturn:
    """In place of this process."""
    _become([*console_command(settings), *options])


def console_command(settings: Settings) -> list[str]:
    return [sys.executable, "-m", "redrive_tui", "--config", _config_path(settings)]


def _daemon(settings: Settings) -> list[str]:
    return [sys.executable, "-m", "redrived", "--config", _config_path(settings)]


def _config_path(settings: Settings) -> str:
    path = settings.config.path
    assert path is not None
    return path


def _become(command: list[str]) -> NoReturn:
    sys.stdout.flush()
    os.execv(command[0], command)


def _answers(settings: Settings) -> bool:
    try:
        with settings.client() as client:
            client.hello()
    except DaemonUnreachable:
        return False
    return True


class Spawned(NamedTuple):
    """A daemon on its way up."""

    process: subprocess.Popen[bytes]
    log: Path
    began: int  # where its own words begin in the log


def spawn_daemon(settings: Settings) -> Spawned:
    """In the background; `wait_until_it_answers` tells when it is up."""
    folder = state_dir(settings.config)
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    log = folder / "redrived.log"
    remark(f"starting redrived; it logs to {log}")
    began = log.stat().st_size if log.exists() else 0
    with log.open("ab") as output:
        process = subprocess.Popen(
            _daemon(settings),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    return Spawned(process, log, began)


def wait_until_it_answers(settings: Settings, spawned: Spawned) -> None:
    process, log, began = spawned
    deadline = time.monotonic() + _PATIENCE
    while not _answers(settings):
        if process.poll() is not None:
            raise _Failed(process.returncode, log, began)
        if time.monotonic() > deadline:
            raise DaemonUnreachable(
                f"redrived (pid {process.pid}) has not answered within {_PATIENCE:g} s",
                hint=f"its log is {log}",
            )
        time.sleep(_POLL)


class _Failed(RedriveError):
    """The daemon ended before it answered; its own words say why."""

    def __init__(self, code: int, log: Path, began: int) -> None:
        with log.open("rb") as file:
            file.seek(began)
            said = file.read().decode("utf-8", "replace").strip()
        super().__init__(f"redrived ended with {code}: {said}", hint=f"its log is {log}")
        try:
            self.exit_code = type(self.exit_code)(code)
        except ValueError:
            pass  # not one of ours
