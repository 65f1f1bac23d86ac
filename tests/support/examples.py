"""The examples as their users run them: a copy of the folder, a real daemon, the flaky server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable
from itertools import groupby
from pathlib import Path
from typing import Any
from urllib.request import Request, urlopen

from redrive.blocking import Client
from redrive.instants import from_iso
from redrive.lifecycle import JobState
from redrive.models import Event
from support.daemon import Daemon, eventually

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


class Example(Daemon):
    """`env` is what its config asks of the environment, most of it waits made short."""

    def __init__(self, name: str, folder: Path, **env: str) -> None:
        home = folder / name
        shutil.copytree(
            EXAMPLES / name, home, ignore=shutil.ignore_patterns("state", "run", "data")
        )
        super().__init__(home, base=(home / "config.toml").read_text())
        self.env = env

    def start(
        self,
        *,
        ready: bool = True,
        env: dict[str, str] | None = None,
        open_files: int | None = None,
    ) -> Example:
        super().start(ready=ready, env={**self.env, **(env or {})}, open_files=open_files)
        return self

    def crash(self) -> None:
        """Pull the plug, and put it back."""
        self.kill()
        self.start()

    def make(self, script: str, *arguments: str) -> str:
        """Run a script of the example; what it printed."""
        command = [sys.executable, script, *arguments]
        made = subprocess.run(command, cwd=self.folder, capture_output=True, text=True, check=True)
        return made.stdout

    def end(self) -> None:
        if self.process is not None:
            self.process.kill()
            self.process.wait()


MakeExample = Callable[..., Example]


class FlakyServer:
    """The server of the examples, programmed by a test."""

    def __init__(self, folder: Path) -> None:
        log = folder / "server.log"
        with log.open("w") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(EXAMPLES / "flaky_server.py"), "--port", "0"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        eventually(lambda: "listening on" in log.read_text(), "the server listens")
        self.url = log.read_text().split()[-1]

    def plan(self, *rules: dict[str, Any]) -> None:
        self._ask("PUT", "/plan", rules)

    def set_outage(self, on: bool) -> None:
        self._ask("PUT" if on else "DELETE", "/outage")

    @property
    def answers(self) -> dict[str, list[int]]:
        """The statuses that each request was answered with, in order."""
        answers: dict[str, list[int]] = self._ask("GET", "/seen")["answers"]
        return answers

    @property
    def hanging(self) -> int:
        hanging: int = self._ask("GET", "/seen")["hanging"]
        return hanging

    def _ask(self, method: str, path: str, value: object = None) -> Any:
        request = Request(self.url + path, json.dumps(value).encode(), method=method)
        with urlopen(request, timeout=10) as answer:
            return json.loads(answer.read())

    def end(self) -> None:
        self._process.kill()
        self._process.wait()


def story(client: Client, id: str | int | None = None) -> list[Event]:
    """Every event of a job or a run, or the whole log."""
    events: list[Event] = []
    while True:
        page = client.events(None if id is None else str(id), after=events[-1].seq if events else 0)
        events += page.events
        if not page.events:
            return events


def told(events: list[Event]) -> list[str]:
    return [event.type for event in events]


def trace(client: Client, job: int) -> list[str]:
    """The states a job went through, each with its attempts: `leased 1/3`."""
    most = client.job(job).max_attempts
    states = (f"{event.state} {event.attempts}/{most}" for event in story(client, job))
    return [state for state, _ in groupby(states)]


def delays(events: list[Event]) -> list[float]:
    """What was decided to wait before each retry."""
    return [event.data["delay"] for event in events if event.type == "step_retry"]


def wait_for_retry(client: Client, job: int, attempt: int) -> None:
    def waits() -> bool:
        seen = client.job(job)
        return (seen.state, seen.attempts) == (JobState.RETRY, attempt)

    eventually(waits, f"job {job} waits after attempt {attempt}")


def check_that_no_retry_was_early(events: list[Event]) -> None:
    """Of one job: each attempt after a retry began when it was due, or later."""
    due = None
    for event in events:
        if event.type == "step_retry":
            due = from_iso(event.data["available_at"])
        elif event.type == "action_started" and due is not None:
            assert event.at >= due
            due = None
