"""A real daemon to be treated badly, and the facts by which it is judged afterwards."""

from __future__ import annotations

import os
import signal
from collections import Counter
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from redrive.blocking import Client
from redrive.lifecycle import JobState
from redrive.models import Event, Job
from redrive.protocol.commands import JobOrder
from redrived.processes import proc
from redrived.store.database import Database
from support import invariants
from support.clock import FakeClock
from support.daemon import Daemon, eventually
from support.ends import has_ended
from support.ground import Ground


class Trial(Daemon):
    """A daemon with a client, and what tests ask of its jobs."""

    _client: Client | None = None

    @property
    def ask(self) -> Client:
        """A client of the daemon that runs now."""
        if self._client is None:
            self._client = self.client()
        return self._client

    @property
    def pid(self) -> int:
        assert self.process is not None
        return self.process.pid

    def hang_up(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None

    def pull_the_plug(self) -> None:
        self.hang_up()
        self.kill()

    def signal(self, number: signal.Signals) -> None:
        os.kill(self.pid, number)

    def enqueue(self, task: str, **args: Any) -> int:
        return self.ask.enqueue(task, args).id

    def enqueue_many(self, task: str, count: int, **args: Any) -> list[int]:
        orders = [JobOrder(args={**args, "n": n}) for n in range(count)]
        placed = self.ask.enqueue_many(task, orders)
        assert placed.first_id is not None
        return list(range(placed.first_id, placed.first_id + count))

    def job(self, id: int) -> Job:
        return self.ask.job(id)

    def events(self, id: int | None = None) -> list[Event]:
        return self.ask.events(None if id is None else str(id), limit=10_000).events

    def told(self, id: int) -> list[str]:
        return [event.type for event in self.events(id)]

    def until_told(self, id: int, kind: str, n: int = 1) -> Event:
        def told() -> Event | None:
            found = [event for event in self.events(id) if event.type == kind]
            return found[n - 1] if len(found) >= n else None

        event = eventually(told, f"event {kind} of job {id}")
        assert event is not None
        return event

    def until_ended(self, id: int) -> Job:
        eventually(lambda: has_ended(self.told(id)), f"the end of job {id}")
        return self.job(id)

    def until_done_at_once(self, id: int) -> None:
        """It is done with its first attempt, of which nothing else is told."""
        job = self.until_ended(id)
        assert (job.state, job.attempts) == (JobState.DONE, 1)
        assert self.told(id)[1:] == ["action_started", "action_completed"]

    def until_all_ended(self, within: float = 120.0) -> None:
        def none_left() -> bool:
            states = self.ask.status().states
            return not any(states.get(state, 0) for state in ("queued", "leased", "retry"))

        eventually(none_left, "all jobs have ended", within=within, every=0.1)

    def wrote(self, name: str) -> list[str]:
        """The lines that jobs have appended to a file; nothing while there is none."""
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    def noted_pid(self, name: str) -> int:
        return int(eventually(lambda: self.wrote(name), f"a pid in {name}")[-1])

    def processes(self) -> set[int]:
        """The living that run in this daemon's folder, itself left out: cwd outlives a setsid."""
        found = {pid for pid, facts in proc.everybody().items() if not facts.is_dead}
        return {pid for pid in found if _cwd(pid) == str(self.folder)} - {self.pid}

    def check_store(self) -> None:
        """What holds of a store whatever happened to it; the daemon is down."""
        database = Database(f"sqlite:///{self.folder}/state/redrive.db")
        try:
            invariants.check(Ground(database, FakeClock()))
        finally:
            database.close()

    def check_execution_counts(self, ids: list[int]) -> None:
        """Every attempt that began has one end, and those that count are counted."""
        for id in ids:
            kinds = Counter(self.told(id))
            job = self.job(id)
            refunds = kinds["job_interrupted"] + kinds["job_restarted"] + kinds["job_snoozed"]
            assert job.attempts == kinds["action_started"] - refunds, (id, kinds)


@contextmanager
def trial(
    folder: Path, config: str, handlers: str = "", base: str | None = None
) -> Generator[Trial]:
    (folder / "handlers.py").write_text(handlers)
    made = Trial(folder, config) if base is None else Trial(folder, config, base)
    try:
        yield made
    finally:
        made.hang_up()
        if made.process is not None and made.process.poll() is None:
            made.process.send_signal(signal.SIGCONT)
            made.process.kill()
            made.process.wait()
        if made.process is not None:
            for pid in made.processes():  # nothing outlives its test
                os.kill(pid, signal.SIGKILL)


def _cwd(pid: int) -> str:
    try:
        return os.readlink(f"/proc/{pid}/cwd")
    except OSError:
        return ""
