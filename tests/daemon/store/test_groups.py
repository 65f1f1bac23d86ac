"""Error groups: what failed alike, told as one."""

from __future__ import annotations

import msgspec

from redrive.models import ErrorRecord
from redrive.protocol.rows import GroupRow
from redrived.store.enqueue import NewJob
from redrived.store.groups import groups
from redrived.store.picking import InHand
from support.ground import Ground


def fail(ground: Ground, job: InHand, guidance: str, *, retry_in: float | None = None) -> None:
    error = ErrorRecord(
        error_type="timeout", category="transient", message="it timed out", guidance=guidance
    )
    ground.fail(
        job,
        retry_in=retry_in,
        error=msgspec.json.encode(error).decode(),
        error_type="timeout",
        fingerprint="f1",
    )


def found(ground: Ground) -> list[GroupRow]:
    return ground.ask(groups, None, ground.clock.now(), 10)


def test_dead_and_retrying_jobs_with_the_same_error_are_one_group(ground: Ground) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * 4)
    for job in ground.take(3):
        fail(ground, job, "Will retry automatically.", retry_in=60)
    fail(ground, ground.take()[0], "Requeue it.")
    [group] = found(ground)
    assert (group.dead, group.retrying, group.tasks) == (1, 3, {"work": 4})
    assert (group.error_type, group.signature) == ("timeout", "it timed out")
    assert sum(group.trend) == 4


def test_a_group_says_what_to_do_about_its_dead_jobs_first(ground: Ground) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * 2)
    first, second = ground.take(2)
    fail(ground, second, "Will retry automatically.", retry_in=60)
    assert found(ground)[0].guidance == "Will retry automatically."
    fail(ground, first, "Requeue it.")
    [group] = found(ground)
    assert (group.sample, group.guidance) == (first.id, "Requeue it.")
