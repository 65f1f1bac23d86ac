"""Lists look only where their jobs can be, and lose none by it."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from redrive.filters import matches, parse
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Job
from redrived.store import jobs, tallies
from redrived.store.actions import Act, act
from redrived.store.enqueue import NewJob
from redrived.store.jobs import Page
from redrived.store.narrowing import Narrowed, narrowed
from support.ground import Ground

DONE = 60
FILTERS = (
    "",
    "state:dead",
    "state:dead,retry,cancelled",
    "!state:done",
    "!state:dead,retry",
    "state:done,dead",
    "state:held",
    "!held:no",
    "state:scheduled",
    "state:scheduled,dead",
    "error:timeout",
    "!error:timeout",
    "error:time*",
    "group:f1",
    "group:f1 state:dead",
    "group:f* state:dead,retry",
    "!group:f1",
    "reason:exhausted",
    "next>0s",
    "task:other",
    "task:oth* error:timeout",
    "queue:default task:nosuch",
    "!task:work",
    "id>40",
)


@pytest.fixture
def mixed(ground: Ground) -> Ground:
    """Mostly what is done; the rest in every other state."""
    ground.add(*[NewJob(task="work", queue="default")] * DONE)
    for job in ground.take(DONE):
        ground.finish(job)
    lanes = (("work", "default"), ("other", "default"), ("work", "bulk"))
    new = [NewJob(task=task, queue=queue, max_attempts=3) for task, queue in lanes * 4]
    ids = [place.id for place in ground.add(*new)]
    for n, job in enumerate(ground.take(8)):
        if n < 6:
            error = ErrorRecord(
                error_type="timeout", category="transient", message="", fingerprint=f"f{n % 3}"
            )
            ground.fail(
                job,
                retry_in=60 if n % 2 else None,
                reason="exhausted",
                error=msgspec.json.encode(error).decode(),
                error_type=error.error_type,
                fingerprint=error.fingerprint,
            )
    waiting = [id for id in ids if ground.job(id).state is JobState.QUEUED]
    ground.do(act, Act(verb="hold", jobs=waiting[:1], by="ann"))
    ground.do(act, Act(verb="cancel", jobs=waiting[1:2], by="ann"))
    later = ground.clock.now() + 9_000_000
    ground.add(NewJob(task="other", queue="default", available_at=later))
    return ground


def look(ground: Ground, text: str) -> Narrowed:
    counts = ground.ask(tallies.read)
    is_sqlite = ground.database.is_sqlite
    return narrowed(parse(text), counts, ground.clock.now(), is_sqlite=is_sqlite)


def expected(ground: Ground, text: str) -> list[Job]:
    """Those of all jobs that the filter means, the newest first."""
    page: Page = ground.ask(jobs.page, None, limit=1_000)
    return [job for job in page.jobs if matches(parse(text), job, ground.clock.now())]


@pytest.mark.parametrize("text", FILTERS)
def test_a_list_misses_nothing_where_it_looks_only_at_some_states(mixed: Ground, text: str) -> None:
    found = look(mixed, text)
    all_of_them = expected(mixed, text)

    assert found.is_empty <= (all_of_them == [])
    page = mixed.ask(jobs.page, found.where, limit=1_000, parts=found.parts)
    assert page.jobs == all_of_them
    assert mixed.ask(jobs.count, found.where) == len(all_of_them)
    for part, other in pairwise(found.parts):
        assert mixed.ask(jobs.count, part & other) == 0


@pytest.mark.parametrize("sort", ["id", "-id", "-age"])
@pytest.mark.parametrize("text", ["!state:done", "error:timeout", "state:dead", "task:other"])
def test_its_pages_are_the_same_by_cursor_and_by_jump(mixed: Ground, text: str, sort: str) -> None:
    found = look(mixed, text)
    whole: Page = mixed.ask(jobs.page, found.where, sort=sort, limit=1_000)
    assert found.parts
    total = len(whole.jobs)

    seen: list[Job] = []
    after: str | None = None
    for n in range(0, total, 2):
        more = {"sort": sort, "limit": 2, "parts": found.parts}
        page: Page = mixed.ask(jobs.page, found.where, after=after, **more)
        seen += page.jobs
        after = page.after
        for known in (None, total):
            jump: Page = mixed.ask(jobs.page, found.where, offset=n, total=known, **more)
            assert (jump.jobs, jump.after) == (page.jobs, page.after)
    assert (seen, after) == (whole.jobs, None)


@pytest.mark.parametrize(
    "text", ["task:nosuch", "queue:nosuch", "queue:bulk task:other", "state:leased queue:nosuch"]
)
def test_where_the_counts_say_there_is_nothing_nothing_is_looked_for(
    mixed: Ground, text: str
) -> None:
    assert look(mixed, text).is_empty


def test_an_empty_store_is_an_empty_list(ground: Ground) -> None:
    found = look(ground, "")
    assert found.is_empty
    assert ground.ask(jobs.page, found.where, total=0).jobs == []
