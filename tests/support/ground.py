"""A real store, worked one commit at a time and without threads, so that a test can stop it
anywhere and look."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from sqlalchemy import Connection

from redrive.lifecycle import JobState
from redrive.models import Event, Job
from redrived.store import events, jobs, tallies
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order, Placed, enqueue
from redrived.store.group import Entry, GroupFailed, Operation, run_group
from redrived.store.leases import Leased, lease
from redrived.store.picking import Berth, InHand, Room, TaskRules
from redrived.store.schema import migrate
from redrived.store.settle import Completed, Ended, complete, end
from redrived.store.unit import Landed, Unit
from support.clock import FakeClock

Item = TypeVar("Item")
Result = TypeVar("Result")

EVERYTHING = {"work": TaskRules(), "other": TaskRules()}


class Ground:
    def __init__(self, database: Database, clock: FakeClock, node: str = "n1") -> None:
        self.database = database
        self.clock = clock
        self.node = node
        self.landed: list[Landed] = []

    def prepare(self) -> Ground:
        with self.database.writers.connect() as connection, connection.begin():
            migrate(connection)
        return self

    def commit(self, entries: Sequence[Entry[Any, Any]]) -> list[Any]:
        """One group, in one commit; what each entry was answered."""
        try:
            landed = self._try(entries)
        except GroupFailed:
            landed = self._try(entries, careful=True)
        self.landed.append(landed)
        return [entry.answer for entry in entries]

    def _try(self, entries: Sequence[Entry[Any, Any]], *, careful: bool = False) -> Landed:
        with self.database.writers.connect() as connection, connection.begin():
            now = self.clock.now()
            unit = Unit(connection, self.database, self.node, now, careful=careful)
            return run_group(unit, list(entries))

    def do(self, operation: Operation[Item, Result], item: Item) -> Result:
        (answer,) = self.commit([Entry(operation, item, None, must_land=False)])
        if isinstance(answer, BaseException):
            raise answer
        return answer  # type: ignore[no-any-return]

    def ask(self, question: Callable[..., Result], *args: Any, **kwargs: Any) -> Result:
        with self.database.readers.connect() as connection:
            return question(connection, *args, **kwargs)

    # ---- what most tests do ----------------------------------------------------------------

    def add(self, *jobs: NewJob) -> list[Placed]:
        return self.do(enqueue, Order(jobs=jobs or [NewJob(task="work", queue="default")]))

    def lease(self, slots: int = 1, **more: Any) -> Leased:
        room = Room(slots=slots, **{"tasks": EVERYTHING, **more})
        return self.do(lease, room)

    def do_lease(self, room: Room) -> Leased:
        return self.do(lease, room)

    def take(self, slots: int = 1) -> list[InHand]:
        """Lease jobs that begin at once."""
        return list(self.lease(slots).picked.jobs())

    def hand(self, worker: int, n: int) -> list[InHand]:
        """Lease jobs into the hand of a worker that is busy: none of them begins."""
        tasks = {name: TaskRules(pool="p", hand=1000) for name in EVERYTHING}
        berth = Berth(worker, share=(n + 0.5) / 1000, empty=False)
        return list(self.lease(0, berths={"p": [berth]}, tasks=tasks).picked.jobs())

    def finish(self, job: InHand) -> set[int]:
        return self.do(complete, [self.completed(job)])

    def completed(self, job: InHand, began_at: int | None = None) -> Completed:
        return Completed(
            job.id,
            job.lease,
            began_at,
            self.clock.now(),
            job.attempt,
            job.queue,
            job.task,
            limit_key=job.limit_key,
        )

    def ended(self, job: InHand, state: JobState, **more: Any) -> Ended:
        last = {"retry": "step_retry", "dead": "step_retry_exhausted"}.get(state, "job_interrupted")
        return Ended(
            job=job.id,
            lease=job.lease,
            attempt=job.attempt,
            queue=job.queue,
            task=job.task,
            state=state,
            ended_at=self.clock.now(),
            limit_key=job.limit_key,
            **{"events": [("action_error", {}), (last, {})], **more},
        )

    def fail(self, job: InHand, *, retry_in: float | None = None, **more: Any) -> bool:
        """End an attempt badly: dead, or to be tried again after so many seconds."""
        if retry_in is None:
            return self.do(end, self.ended(job, JobState.DEAD, **more))
        at = self.clock.now() + round(retry_in * 1_000_000)
        return self.do(end, self.ended(job, JobState.RETRY, available_at=at, **more))

    def job(self, id: int) -> Job:
        found = self.ask(jobs.get, id)
        assert found is not None, f"no job {id}"
        return found

    def events(self, job: int | None = None) -> list[Event]:
        if job is not None:
            return self.ask(events.of_job, job)
        return self.ask(events.after, 0, 1_000_000)

    def told(self, job: int) -> list[str]:
        return [event.type for event in self.events(job)]

    def counts(self) -> dict[str, int]:
        return {s: n for s, n in tallies.by_state(self.ask(tallies.read)).items() if n}

    def waits(self, id: int) -> str | None:
        def look(connection: Connection) -> str | None:
            from sqlalchemy import text

            row = connection.execute(text("SELECT waits FROM jobs WHERE id = :id"), {"id": id})
            return row.scalar_one()  # type: ignore[no-any-return]

        return self.ask(look)
