"""A real `redrived`, started as its users start it, in folders of its own."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from redrive.blocking import Client

Found = TypeVar("Found")

PATIENCE = 30.0  # seconds that a fact may take on a loaded machine

BASE = """
[daemon]
name = "n1"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 4
shutdown_grace = "5s"
"""


class Daemon:
    program: tuple[str, ...] = ("-m", "redrived")

    def __init__(self, folder: Path, config: str = "", base: str = BASE) -> None:
        self.folder = folder
        self.config = folder / "config.toml"
        self.config.write_text(base + config)
        self.log = folder / "redrived.log"
        self.process: subprocess.Popen[bytes] | None = None

    def start(
        self,
        *,
        ready: bool = True,
        env: dict[str, str] | None = None,
        open_files: int | None = None,
    ) -> Daemon:
        limit = [] if open_files is None else ["prlimit", f"--nofile={open_files}"]
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [*limit, sys.executable, *self.program, "--config", str(self.config)],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                env={**os.environ, **(env or {})},
            )
        if ready:
            self.wait_ready()
        return self

    def wait_ready(self) -> None:
        def up() -> bool:
            assert self.process is not None
            if self.process.poll() is not None:
                raise AssertionError(f"redrived exited:\n{self.log.read_text()}")
            return f"(pid {self.process.pid})" in self.log.read_text()

        eventually(up, "redrived is up")

    def kill(self) -> None:
        """Pull the plug."""
        assert self.process is not None
        self.process.kill()
        self.process.wait()
        self.log.write_text("")

    def stop(self) -> int:
        """SIGTERM, and what it exited with."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"redrived did not stop:\n{self.log.read_text()}") from None

    def client(self) -> Client:
        return Client(config=self.config)

    def command(self, *words: str) -> list[str]:
        """`redrive ...` against this daemon, as it was installed."""
        program = Path(sys.executable).with_name("redrive")
        return [str(program), "--config", str(self.config), *words]

    def run(self, *words: str, check: bool = False) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            self.command(*words),
            capture_output=True,
            text=True,
            cwd=self.folder,
            timeout=60,
            check=check,
            stdin=subprocess.DEVNULL,
        )


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        port: int = found.getsockname()[1]
        return port


def eventually(
    look: Callable[[], Found], what: str, within: float = PATIENCE, every: float = 0.02
) -> Found:
    """Wait for a fact at a process boundary, where nothing announces it."""
    deadline = time.monotonic() + within
    while True:
        found = look()
        if found:
            return found
        if time.monotonic() > deadline:
            raise AssertionError(f"not within {within:g} s: {what}; last seen: {found!r}")
        time.sleep(every)


async def soon(look: Callable[[], Any], what: str, within: float = PATIENCE) -> None:
    """The same where an event loop runs."""
    deadline = time.monotonic() + within
    while not look():
        assert time.monotonic() < deadline, f"not within {within:g} s: {what}"
        await asyncio.sleep(0.005)
