"""Jobs put into a store that no daemon has open, and what benches do with a daemon.

The jobs go the way all jobs go: enqueued, leased and ended by the store's own operations, so
rows, events and counts are what a daemon would have left behind.
"""

from __future__ import annotations

import msgspec

from redrive.blocking import Client
from redrive.clock import SystemClock
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord
from redrive.protocol.commands import JobOrder, PauseIt, ResumeIt
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.picking import Berth, InHand, Room, TaskRules
from redrived.store.settle import Ended, end
from redrived.store.store import Store
from support.daemon import eventually

BATCH = 5_000
ERROR = ErrorRecord(
    error_type="unavailable",
    category="transient",
    message="503 Service Unavailable",
    fingerprint="0123456789abcdef",
)


async def fail_once(url: str, task: str, count: int, *, retry_at: int | None) -> None:
    """So many jobs that failed once: due again at that instant, or dead."""
    store = Store(url, SystemClock(), "bench")
    await store.open()
    try:
        for done in range(0, count, BATCH):
            await _fail(store, task, min(BATCH, count - done), retry_at)
    finally:
        await store.close()


async def _fail(store: Store, task: str, count: int, retry_at: int | None) -> None:
    jobs = [NewJob(task=task, queue="default", max_attempts=2) for _ in range(count)]
    await store.submit(enqueue, Order(jobs=jobs))
    rules = TaskRules(pool="default", hand=1_000_000)
    share = (count + 0.5) / rules.hand
    room = Room(slots=1, berths={"default": [Berth(0, share, empty=False)]}, tasks={task: rules})
    leased = (await store.submit(lease, room)).picked.jobs()
    for landing in [store.submit(end, _failure(store, job, retry_at)) for job in leased]:
        await landing


def _failure(store: Store, job: InHand, retry_at: int | None) -> Ended:
    now = store.clock.now()
    sleeps = retry_at is not None
    return Ended(
        job=job.id,
        lease=job.lease,
        attempt=job.attempt,
        queue=job.queue,
        task=job.task,
        state=JobState.RETRY if sleeps else JobState.DEAD,
        began_at=now,
        ended_at=now,
        available_at=retry_at,
        reason=None if sleeps else "exhausted",
        error=msgspec.json.encode(ERROR).decode(),
        error_type=ERROR.error_type,
        fingerprint=ERROR.fingerprint,
        events=[
            ("action_error", {"error": msgspec.to_builtins(ERROR)}),
            ("step_retry" if sleeps else "step_retry_exhausted", {}),
        ],
    )


def put_behind_a_pause(client: Client, task: str, count: int) -> None:
    """So many jobs that start when the task is resumed."""
    client.ask(PauseIt(name=f"task:{task}"))
    client.enqueue_many(task, (JobOrder() for _ in range(count)))


def resume(client: Client, task: str) -> None:
    client.ask(ResumeIt(name=f"task:{task}"))


def until_done(client: Client, count: int, within: float = 300) -> None:
    """Until so many jobs of the store are done."""
    eventually(lambda: client.status().states["done"] >= count, f"{count:,} done", within)


def warm_up(client: Client, task: str, count: int = 100) -> None:
    """Let the workers be there and the pace of the task be known."""
    done = client.status().states["done"]
    client.enqueue_many(task, (JobOrder() for _ in range(count)))
    until_done(client, done + count)
