"""A redrive that is undone leaves jobs and runs as they were."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from redrive.config.sections import ManualRetry
from redrive.errors import TryLater, WrongState
from redrived.store.actions import Act, act
from redrived.store.enqueue import NewJob
from redrived.store.picking import TaskRules
from redrived.store.redrives import NewRedrive, Portion, create, requeue_portion
from redrived.store.undo import undo
from support.ground import Ground
from support.invariants import check, check_log
from support.runs import Track, step


@pytest.fixture
def track(ground: Ground) -> Track:
    return Track(ground, step("parse"), step("embed"), step("analyze"))


def redriven(ground: Ground) -> int:
    """All that can be requeued is, a minute after whatever there was before."""
    ground.clock.move(61)
    chosen = ground.do(create, NewRedrive(by="ann"))
    assert chosen.id is not None
    ground.do(requeue_portion, Portion(redrive=chosen.id, n=100, by="ann"))
    return chosen.id


def rows(ground: Ground, table: str) -> list[dict[str, Any]]:
    with ground.database.readers.connect() as connection:
        found = connection.execute(text(f"SELECT * FROM {table} ORDER BY 1, 2")).mappings()
        return [dict(row) for row in found]


def requeue(ground: Ground, job: int, **more: Any) -> Exception | None:
    wish = Act(verb="requeue", jobs=[job], by="ann", manual=ManualRetry(), **more)
    [acted] = ground.do(act, wish)
    return acted.refused


def test_a_failed_run_is_failed_again_as_if_nothing_had_been(track: Track) -> None:
    run = track.start()
    track.finish("parse", result=1)
    track.fail("embed", metrics='{"pages": 3}', reason="exhausted")
    before = track.run(run), rows(track.ground, "runs"), rows(track.ground, "steps")

    id = redriven(track.ground)
    assert track.run(run).state == "running"
    assert track.ground.do(undo, (id, "ann")) == 1

    assert (track.run(run), rows(track.ground, "runs"), rows(track.ground, "steps")) == before
    assert track.told(run)[-1] == "redrive_undone"
    check(track.ground)
    check_log(track.ground)
    track.requeue(run)
    track.finish("embed")
    track.finish("analyze")
    assert track.run(run).state == "done"


def test_a_run_whose_job_was_cancelled_is_cancelled_again(track: Track) -> None:
    run = track.start()
    track.cancelled(track.take("parse"))
    before = track.run(run)
    assert before.state == "cancelled"

    track.ground.do(undo, (redriven(track.ground), "ann"))

    assert track.run(run) == before


def test_what_has_begun_of_a_run_keeps_it_running(ground: Ground) -> None:
    track = Track(ground, step("a"), step("b", needs=[]), step("c", needs=["a", "b"]))
    run = track.start()
    for job in ground.take(2):
        track.fail_job(job)
    id = redriven(ground)
    [begun] = ground.take()

    assert ground.do(undo, (id, "ann")) == 1

    assert track.states(run) == {"a": "leased", "b": "dead", "c": "skipped"}
    assert track.run(run).state == "running"
    track.fail_job(begun)
    assert track.run(run).state == "failed"


def test_an_end_that_came_after_the_redrive_is_told_and_has_its_own_time(ground: Ground) -> None:
    track = Track(ground, step("a"), step("b", needs=[]))
    run = track.start()
    for job in ground.take(2):
        track.fail_job(job)
    id = redriven(ground)
    track.fail_job(*ground.take())
    ground.clock.move(1)

    ground.do(undo, (id, "ann"))

    record = track.run(run)
    assert (record.state, record.finished_at) == ("failed", ground.clock.now())
    assert track.told(run)[-1] == "execution_failed"


def test_a_run_may_be_taken_up_at_once_after_an_undo(track: Track) -> None:
    run = track.start()
    track.fail("parse")
    track.ground.do(undo, (redriven(track.ground), "ann"))

    assert track.requeue(run, manual=ManualRetry()).state == "running"


def test_a_job_may_be_requeued_at_once_after_an_undo(ground: Ground) -> None:
    [placed] = ground.add()
    ground.fail(*ground.take())
    ground.do(undo, (redriven(ground), "ann"))

    assert requeue(ground, placed.id) is None


def test_an_earlier_cooldown_goes_on_after_an_undo(ground: Ground) -> None:
    [placed] = ground.add()
    ground.fail(*ground.take())
    requeue(ground, placed.id)
    ground.fail(*ground.take())
    chosen = ground.do(create, NewRedrive(by="ann"))
    assert chosen.id is not None
    ground.do(requeue_portion, Portion(redrive=chosen.id, n=1, by="ann", force=True))

    ground.do(undo, (chosen.id, "ann"))

    assert isinstance(requeue(ground, placed.id), TryLater)


def test_who_waits_behind_a_key_comes_forward(ground: Ground) -> None:
    one = {"work": TaskRules(keyed=True)}
    keyed = NewJob(task="work", queue="default", limit_key="k")
    ground.add(keyed)
    ground.fail(*ground.take())
    ground.add(keyed)
    [running] = ground.take()
    id = redriven(ground)
    [behind] = ground.add(keyed)
    assert not list(ground.lease(5, tasks=one).picked.jobs())
    ground.finish(running)
    assert (ground.waits(1), ground.waits(behind.id)) == ("ready", "key")

    ground.do(undo, (id, "ann"))

    assert ground.waits(behind.id) == "ready"
    check(ground)


def test_a_second_undo_says_that_it_was_undone(ground: Ground) -> None:
    ground.add()
    ground.fail(*ground.take())
    id = redriven(ground)
    ground.do(undo, (id, "ann"))

    with pytest.raises(WrongState, match=f"redrive {id} was undone already"):
        ground.do(undo, (id, "ann"))
