"""The writer: group commit, answers only after it, each operation alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from msgspec import structs
from sqlalchemy import Connection, event

from redrive.errors import NotFound, RedriveError, TryLater
from redrived.store import jobs
from redrived.store.database import Database
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.picking import Berth, Room, TaskRules
from redrived.store.unit import Landed, Unit
from support.clock import FakeClock
from support.ground import Ground
from support.invariants import check
from support.open_store import WORK, OpenStore, url_of

ROOM = Room(slots=4, tasks={"work": TaskRules()})


class Gate:
    """An operation that keeps the writer busy until a test lets it go on."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.go_on = threading.Event()

    def __call__(self, unit: Unit, items: Sequence[str]) -> list[str]:
        self.begun.set()
        assert self.go_on.wait(20)
        return list(items)


def count_together(unit: Unit, items: Sequence[Any]) -> list[int]:
    return [len(items)] * len(items)


def add_then_fail_if_bad(unit: Unit, items: Sequence[str]) -> list[str]:
    for item in items:
        enqueue(unit, [Order(jobs=[WORK])])
        if item == "bad":
            raise NotFound("it is bad")
    return list(items)


def say_what_cannot_be_written(unit: Unit, items: Sequence[str]) -> list[str]:
    for item in items:
        enqueue(unit, [Order(jobs=[WORK])])
        if item == "bad":
            unit.emit("\udcff")
    return list(items)


def answer_by_an_exception(unit: Unit, items: Sequence[str]) -> list[str | RedriveError]:
    enqueue(unit, [Order(jobs=[WORK])])
    return [NotFound("not here") if item == "bad" else item for item in items]


async def group(opened: OpenStore, *submits: Any) -> list[Any]:
    """Whatever is submitted while a commit is under way, and its answers."""
    gate = Gate()
    first = opened.store.submit(gate, "first")
    await asyncio.to_thread(gate.begun.wait)
    waiting = [opened.store.submit(operation, item) for operation, item in submits]
    gate.go_on.set()
    await first
    return await asyncio.gather(*waiting, return_exceptions=True)


async def test_what_arrives_during_a_commit_is_the_next_commit(opened: OpenStore) -> None:
    groups = opened.store.writer.groups

    answers = await group(opened, *[(count_together, None)] * 5)

    assert answers == [5] * 5
    assert opened.store.writer.groups == groups + 2


async def test_the_order_of_what_was_asked_is_kept(opened: OpenStore) -> None:
    order = Order(jobs=[WORK])
    answers = await group(
        opened, (enqueue, order), (count_together, None), (enqueue, order), (enqueue, order)
    )

    assert [[place.id for place in answer] for answer in answers if answer != 1] == [[1], [2], [3]]


@pytest.mark.parametrize("operation", [add_then_fail_if_bad, say_what_cannot_be_written])
async def test_each_operation_of_a_group_fails_alone(
    opened: OpenStore, ground: Ground, operation: Any
) -> None:
    answers = await group(opened, *[(operation, item) for item in ("a", "bad", "b")])

    assert (answers[0], answers[2]) == ("a", "b")
    assert isinstance(answers[1], NotFound | UnicodeEncodeError)
    assert await opened.ids() == [1, 2]
    assert sum(len(landed.events) for landed in opened.landed) == 2
    assert opened.store.writer.trouble is None
    check(ground)


async def test_a_lease_in_a_group_that_is_done_again_takes_each_job_once(
    opened: OpenStore,
) -> None:
    room = Room(slots=1, berths={"p": [Berth("w")]}, tasks={"work": TaskRules(pool="p", hand=10)})
    await opened.store.submit(enqueue, Order(jobs=[WORK, WORK]))
    leased, _ = await group(opened, (lease, room), (add_then_fail_if_bad, "bad"))

    assert [job.id for job in leased.picked.jobs()] == [1, 2]


async def test_what_failed_alone_says_nothing_and_counts_nothing(
    opened: OpenStore, ground: Ground
) -> None:
    with pytest.raises(NotFound):
        await opened.store.submit(add_then_fail_if_bad, "bad")

    assert opened.landed == []
    assert ground.events() == []
    assert ground.counts() == {}
    check(ground)


async def test_an_answer_may_be_an_error_for_one_while_the_others_land(opened: OpenStore) -> None:
    good, bad = await group(
        opened, (answer_by_an_exception, "good"), (answer_by_an_exception, "bad")
    )

    assert good == "good"
    assert isinstance(bad, NotFound)
    assert await opened.ids() == [1]


async def test_an_answer_comes_after_the_commit_and_after_its_announcement(
    opened: OpenStore, ground: Ground
) -> None:
    seen: list[tuple[bool, bool]] = []
    future = opened.submit()

    def look(landed: Landed) -> None:
        on_disk = ground.ask(jobs.get, 1) is not None
        seen.append((on_disk, future.done()))

    opened.store.landed.append(look)
    [placed] = await future

    assert seen == [(True, False)]
    assert ground.job(placed.id).task == "work"


async def test_after_an_error_in_a_transaction_the_next_group_has_a_sound_connection(
    opened: OpenStore, ground: Ground
) -> None:
    """The rollback fails as well: what the first group did is still open on its connection."""
    assert await opened.add() == [1]

    def break_down(connection: Connection) -> None:
        raise OSError("the connection broke")

    event.listen(opened.store.database.writers, "rollback", break_down, once=True)
    with pytest.raises(OSError, match="the connection broke"):
        await opened.store.submit(add_then_fail_if_bad, "bad")

    await opened.add()
    assert len(await opened.ids()) == 2
    check(ground)


async def test_a_listener_that_fails_keeps_nobody_waiting(opened: OpenStore) -> None:
    complaints: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, told: complaints.append(told))

    def fail(landed: Landed) -> None:
        raise ZeroDivisionError

    opened.store.landed.append(fail)

    assert await opened.add() == [1]
    assert isinstance(complaints[0]["exception"], ZeroDivisionError)


async def test_a_caller_that_stops_waiting_takes_nothing_back(opened: OpenStore) -> None:
    gate = Gate()
    first = opened.store.submit(gate, "first")
    await asyncio.to_thread(gate.begun.wait)
    opened.submit().cancel()
    other = opened.submit()
    gate.go_on.set()
    await first

    assert [place.id for place in await other] == [2]


async def test_a_stop_lands_what_is_waiting_and_refuses_the_rest(
    database: Database, clock: FakeClock, ground: Ground
) -> None:
    opened = await OpenStore(url_of(database), clock).open()
    waiting = [opened.submit() for _ in range(50)]
    closing = asyncio.ensure_future(opened.store.close())
    await asyncio.sleep(0)
    late = opened.submit()
    await closing

    with pytest.raises(TryLater, match="stopping"):
        await late
    assert {place.id for answer in waiting for place in await answer} == set(range(1, 51))
    check(ground)


async def test_a_store_that_could_not_be_opened_can_be_closed(
    database: Database, clock: FakeClock
) -> None:
    opened = OpenStore(url_of(database), clock)

    await opened.store.close()


async def test_a_long_queue_is_committed_in_several_groups(
    opened: OpenStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    from redrived.store import writer

    monkeypatch.setattr(writer, "GROUP_LIMIT", 3)
    assert await group(opened, *[(count_together, None)] * 7) == [3, 3, 3, 3, 3, 3, 1]


def test_a_task_without_a_name_is_an_error_of_its_own(ground: Ground) -> None:
    with pytest.raises(Exception, match="task"):
        ground.add(NewJob(task=None, queue="default"))  # type: ignore[arg-type]
    check(ground)


async def test_what_stands_is_done_in_the_commit_that_makes_something_ready(
    opened: OpenStore, ground: Ground
) -> None:
    groups = opened.store.writer.groups
    standing = opened.store.stand(lease, ROOM)
    [placed] = await opened.store.submit(enqueue, Order(jobs=[WORK]))
    leased = await standing

    assert [job.id for job in leased.picked.jobs()] == [placed.id]
    assert opened.store.writer.groups == groups + 1
    assert [landed.made_ready for landed in opened.landed] == [False]
    check(ground)


async def test_what_stands_lets_pass_what_makes_nothing_ready(opened: OpenStore) -> None:
    standing = opened.store.stand(lease, ROOM)
    await opened.store.submit(enqueue, Order(jobs=[structs.replace(WORK, held=True)]))

    assert not standing.done()
    assert opened.store.withdraw(standing)


async def test_what_was_withdrawn_is_not_done(opened: OpenStore) -> None:
    standing = opened.store.stand(lease, ROOM)
    assert opened.store.withdraw(standing)
    [placed] = await opened.store.submit(enqueue, Order(jobs=[WORK]))

    assert standing.cancelled()
    job = await opened.store.read(jobs.get, placed.id)
    assert job is not None
    assert job.state == "queued"
    assert [landed.made_ready for landed in opened.landed] == [True]


async def test_what_has_been_done_cannot_be_withdrawn(opened: OpenStore) -> None:
    standing = opened.store.stand(lease, ROOM)
    await opened.store.submit(enqueue, Order(jobs=[WORK]))

    assert not opened.store.withdraw(standing)
    assert (await standing).picked.slots


async def test_what_stands_fails_alone_and_leaves_what_is_ready_to_others(
    opened: OpenStore, ground: Ground
) -> None:
    standing = opened.store.stand(add_then_fail_if_bad, "bad")
    await opened.store.submit(enqueue, Order(jobs=[WORK]))

    with pytest.raises(NotFound):
        await standing
    assert await opened.ids() == [1]
    assert [landed.made_ready for landed in opened.landed] == [True]
    check(ground)
