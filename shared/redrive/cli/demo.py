"""`redrive demo`: a daemon on a throw-away store, a lively workload, and the console."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from types import FrameType

import click

from redrive.cli.output import remark
from redrive.cli.settings import Settings
from redrive.cli.terminal import has_terminal
from redrive.cli.up import console_command, spawn_daemon, wait_until_it_answers
from redrive.cli.verb import Verb

_PATIENCE = 15.0  # seconds that the daemon may take to stop


@click.command(cls=Verb, examples=["redrive demo", "redrive demo --json | head -100"])
@click.pass_obj
def demo(settings: Settings) -> int:
    """Show what redrive does, on a store that is thrown away.

    Five systems at a lively pace: jobs that fail, retry, stall and die, a batch with its gate,
    a schedule. Opens the console; without a terminal, follows the events. The end of either
    ends it all.
    """
    from redrive.demo import service, workload

    _end_in_order()
    with TemporaryDirectory(prefix="redrive-demo-") as folder, service.running() as address:
        path = Path(folder, "config.toml")
        path.write_text(workload.config_text(address))
        demonstrated = Settings()
        demonstrated.config_path = str(path)
        with _daemon(demonstrated), workload.running(demonstrated.config, address):
            remark(f"the demo runs in {folder}; `redrive --config {path} ...` talks to it")
            return _show(demonstrated, settings.as_json)


def _end_in_order() -> None:
    """Whatever ends us, and however often it says so, nothing stays behind."""
    ends = (signal.SIGTERM, signal.SIGHUP, signal.SIGINT)

    def leave(number: int, _: FrameType | None) -> None:
        for each in ends:
            signal.signal(each, signal.SIG_IGN)
        if number == signal.SIGINT:
            raise KeyboardInterrupt
        sys.exit(128 + number)

    for number in ends:
        signal.signal(number, leave)
    # A client that hangs up must not end the service, which is a thread of this process.
    signal.signal(signal.SIGPIPE, signal.SIG_IGN)


@contextmanager
def _daemon(settings: Settings) -> Generator[None]:
    spawned = spawn_daemon(settings)
    process = spawned.process
    try:
        wait_until_it_answers(settings, spawned)
        yield
    finally:
        process.terminate()
        try:
            process.wait(_PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _show(settings: Settings, as_json: bool) -> int:
    if has_terminal():
        command = console_command(settings)
    else:
        command = [sys.executable, "-m", "redrive", "--config", str(settings.config_path)]
        command += ["events", "--follow"] + ["--json"] * as_json
    shown = subprocess.Popen(command)
    try:
        return shown.wait()
    finally:
        shown.terminate()
        shown.wait()
