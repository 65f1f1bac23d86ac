"""Error groups: what failed alike, told as one."""

from __future__ import annotations

import msgspec
import pytest

from redrive.filters import parse
from redrive.models import ErrorRecord
from redrive.protocol.rows import GroupRow
from redrived.store import job_pages
from redrived.store.enqueue import NewJob
from redrived.store.filtering import where
from redrived.store.groups import groups
from redrived.store.picking import InHand
from support.ground import Ground


def fail(
    ground: Ground,
    job: InHand,
    guidance: str,
    *,
    retry_in: float | None = None,
    fingerprint: str = "f1",
) -> None:
    error = ErrorRecord(
        error_type="timeout", category="transient", message="it timed out", guidance=guidance
    )
    ground.fail(
        job,
        retry_in=retry_in,
        error=msgspec.json.encode(error).decode(),
        error_type="timeout",
        fingerprint=fingerprint,
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


@pytest.mark.parametrize(
    ("by", "names"),
    [
        ("task", {"work": 2, "other": 1}),
        ("queue", {"default": 2, "bulk": 1}),
        ("node", {"n1": 3}),
        ("day", {"2026-09-21": 2, "2026-09-22": 1}),
    ],
)
def test_the_same_jobs_are_told_by_what_they_have_in_common(
    ground: Ground, by: str, names: dict[str, int]
) -> None:
    ground.add(
        NewJob(task="work", queue="default"),
        NewJob(task="work", queue="bulk"),
        NewJob(task="other", queue="default"),
    )
    first, second, third = sorted(ground.take(3), key=lambda job: job.id)
    fail(ground, first, "Requeue it.")
    fail(ground, second, "Requeue it.")
    ground.clock.move(86_400)
    fail(ground, third, "Requeue it.")

    rows = ground.ask(groups, None, ground.clock.now(), 10, by)

    assert {row.name: row.dead for row in rows} == names
    for row in rows:
        filter = parse(f"state:dead {by}:{row.name}")
        clause = where(filter, ground.clock.now(), is_sqlite=ground.database.is_sqlite)
        assert ground.ask(job_pages.count, clause) == row.dead


def test_what_has_several_errors_is_told_by_the_one_that_most_have(ground: Ground) -> None:
    ground.add(*[NewJob(task="work", queue="default")] * 3)
    first, second, third = ground.take(3)
    fail(ground, first, "Requeue it.")
    fail(ground, second, "Requeue it.")
    fail(ground, third, "Ask.", fingerprint="f0")
    [row] = ground.ask(groups, None, ground.clock.now(), 10, "queue")
    assert (row.fingerprint, row.errors, row.guidance) == ("f1", 2, "Requeue it.")
