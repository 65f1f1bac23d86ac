"""A slot is fired once, whoever thinks it is due."""

from __future__ import annotations

import pytest

from redrived.store import schedules
from redrived.store.actions import Act, act
from redrived.store.enqueue import NewJob, Order
from redrived.store.group import Entry
from redrived.store.schedules import Fire, Slot, adopt, fire
from support.ground import Ground
from support.runs import seconds


@pytest.fixture(autouse=True)
def _adopted(ground: Ground) -> None:
    ground.do(adopt, {"s": "digest"})


def due(ground: Ground, after: float = 0, **more: object) -> Fire:
    at = ground.clock.now() + seconds(after)
    order = Order(jobs=[NewJob(task="work", queue="default")], by="schedule s")
    fields = {"schedule": "s", "slots": [Slot(at=at, order=order)], "dealt_with": at, **more}
    return Fire(**fields)  # type: ignore[arg-type]


def told(ground: Ground) -> list[str]:
    return [event.type for event in ground.events() if event.type.startswith("schedule")]


def outcomes(ground: Ground) -> list[str]:
    return [each.outcome for each in ground.ask(schedules.last_fires, ["s"], 10)["s"]]


def test_two_units_that_write_the_same_slot_make_one_job(ground: Ground) -> None:
    item = due(ground)
    assert len(ground.do(fire, item)) == 1
    assert ground.do(fire, item) == []
    assert ground.counts() == {"queued": 1}
    assert told(ground) == ["schedule_fired"]


def test_two_of_one_group_make_one_job_too(ground: Ground) -> None:
    item = due(ground)
    ground.commit([Entry(fire, item, None, must_land=False) for _ in range(2)])
    assert ground.counts() == {"queued": 1}


def test_a_slot_and_its_job_are_one_commit(ground: Ground) -> None:
    [fired] = ground.do(fire, due(ground))
    [row] = ground.ask(schedules.last_fires, ["s"], 10)["s"]
    assert (row.outcome, row.job, row.state) == ("fired", fired.job, "queued")
    assert ground.ask(schedules.standings)["s"].last_slot == fired.slot


def test_a_slot_is_skipped_and_told_while_the_one_before_runs(ground: Ground) -> None:
    ground.do(fire, due(ground, overlap="skip"))
    ground.do(fire, due(ground, 1, overlap="skip"))
    assert outcomes(ground) == ["fired", "skipped"]
    assert told(ground) == ["schedule_fired", "schedule_missed"]


def test_what_is_dead_no_longer_runs(ground: Ground) -> None:
    ground.do(fire, due(ground, overlap="skip"))
    [job] = ground.take()
    ground.fail(job)
    ground.do(fire, due(ground, 1, overlap="skip"))
    assert outcomes(ground) == ["fired", "fired"]


def test_queued_slots_fire_one_after_the_other(ground: Ground) -> None:
    ground.do(fire, due(ground, overlap="queue"))
    second, third = due(ground, 1, overlap="queue"), due(ground, 2, overlap="queue")
    ground.do(fire, second)
    ground.do(fire, third)
    waiting = ground.ask(schedules.waiting)
    assert waiting.slots == [("s", second.slots[0].at)]
    assert waiting.jobs == {1}

    release = due(ground, 1, overlap="queue", was_queued=True, dealt_with=None)
    assert ground.do(fire, release) == []
    ground.do(act, Act(verb="cancel", jobs=[1], by="ann"))
    assert len(ground.do(fire, release)) == 1
    assert ground.do(fire, release) == []
    assert outcomes(ground) == ["fired", "fired", "queued"]


def test_a_slot_does_not_pass_those_that_wait(ground: Ground) -> None:
    ground.do(fire, due(ground, overlap="queue"))
    ground.do(fire, due(ground, 1, overlap="queue"))
    ground.do(act, Act(verb="cancel", jobs=[1], by="ann"))
    assert ground.do(fire, due(ground, 2, overlap="queue")) == []
    assert outcomes(ground) == ["fired", "queued", "queued"]


def test_no_more_slots_wait_than_are_allowed(ground: Ground) -> None:
    for after in range(4):
        ground.do(fire, due(ground, after, overlap="queue", most_queued=2))
    assert outcomes(ground) == ["fired", "queued", "queued", "skipped"]


def test_old_slots_are_forgotten_as_new_ones_fire(ground: Ground) -> None:
    for after in range(schedules.KEPT + 20):
        ground.do(fire, due(ground, after))
    kept = ground.ask(schedules.last_fires, ["s"], 1_000)["s"]
    assert len(kept) == schedules.KEPT + 1


def test_a_schedule_that_is_gone_starts_anew_when_it_returns(ground: Ground) -> None:
    ground.do(adopt, {})
    ground.clock.move(86_400)
    ground.do(adopt, {"s": "digest"})
    assert ground.ask(schedules.standings)["s"].last_slot == ground.clock.now()
    ground.clock.move(60)
    ground.do(adopt, {"s": "digest"})
    assert ground.ask(schedules.standings)["s"].last_slot < ground.clock.now()
