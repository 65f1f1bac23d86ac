"""Lists look only where their jobs can be, and lose none by it."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest

from redrive.filters import matches, parse
from redrive.lifecycle import WAITING, JobState
from redrive.models import ErrorRecord, Job
from redrived.store import failures, job_pages, tallies
from redrived.store.actions import Act, act
from redrived.store.enqueue import NewJob
from redrived.store.job_pages import Page
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
    "error:TIMEOUT",
    "error:*E*,nosuch !error:nosuch",
    "error:nosuch",
    "error:timeout group:f1,f2",
    "group:f1 !group:f2",
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


def look(ground: Ground, text: str, sort: str = "-id") -> Narrowed:
    counts, aside = ground.ask(tallies.read_with_waits)
    now = ground.clock.now()
    return ground.ask(narrowed, parse(text), counts, aside, now, sort=sort)


def expected(ground: Ground, text: str) -> list[Job]:
    """Those of all jobs that the filter means, the newest first."""
    page: Page = ground.ask(job_pages.page, None, limit=1_000)
    return [job for job in page.jobs if matches(parse(text), job, ground.clock.now())]


@pytest.mark.parametrize("text", FILTERS)
def test_a_list_misses_nothing_where_it_looks_only_at_some_states(mixed: Ground, text: str) -> None:
    found = look(mixed, text)
    all_of_them = expected(mixed, text)

    assert found.is_empty <= (all_of_them == [])
    page = mixed.ask(job_pages.page, found.where, limit=1_000, parts=found.parts)
    assert page.jobs == all_of_them
    assert mixed.ask(job_pages.count, found.where) == len(all_of_them)
    for part, other in pairwise(found.parts):
        assert mixed.ask(job_pages.count, part.where & other.where) == 0


@pytest.mark.parametrize("sort", ["id", "-id", "next", "-next", "-age"])
@pytest.mark.parametrize(
    "text",
    [
        *("!state:done", "error:timeout", "state:dead", "task:other", "state:queued,retry"),
        *("state:retry", "state:held", "group:f1,f2", "error:time*,nosuch state:dead"),
    ],
)
def test_its_pages_are_the_same_by_cursor_and_by_jump(mixed: Ground, text: str, sort: str) -> None:
    found = look(mixed, text, sort)
    whole: Page = mixed.ask(job_pages.page, found.where, sort=sort, limit=1_000)
    assert found.parts or "age" in sort or "error" in text or "group" in text
    total = len(whole.jobs)

    seen: list[Job] = []
    after: str | None = None
    for n in range(0, total, 2):
        more = {"sort": sort, "limit": 2, "parts": found.parts}
        page: Page = mixed.ask(job_pages.page, found.where, after=after, **more)
        seen += page.jobs
        after = page.after
        for known in (None, total):
            jump: Page = mixed.ask(job_pages.page, found.where, offset=n, total=known, **more)
            assert (jump.jobs, jump.after) == (page.jobs, page.after)
    assert (seen, after) == (whole.jobs, None)


@pytest.mark.parametrize(
    "text", ["task:nosuch", "queue:nosuch", "queue:bulk task:other", "state:leased queue:nosuch"]
)
def test_where_the_counts_say_there_is_nothing_nothing_is_looked_for(
    mixed: Ground, text: str
) -> None:
    assert look(mixed, text).is_empty


def test_where_no_error_has_the_name_nothing_is_looked_for(mixed: Ground) -> None:
    assert look(mixed, "error:nosuch").is_empty
    assert not look(mixed, "!error:nosuch").is_empty


def test_errors_of_more_types_than_are_few_are_found_all_the_same(
    mixed: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    everything = {text: expected(mixed, text) for text in ("error:time*", "error:nosuch")}
    monkeypatch.setattr(failures, "MOST_TYPES", 0)
    for text, found in everything.items():
        where = look(mixed, text).where
        assert mixed.ask(job_pages.page, where, limit=1_000).jobs == found


def test_next_is_what_waits_in_the_order_it_is_due_and_then_what_waits_no_more(
    mixed: Ground,
) -> None:
    found = look(mixed, "", "next")
    page: Page = mixed.ask(job_pages.page, found.where, sort="next", limit=99, parts=found.parts)
    due = [job.available_at or 0 for job in page.jobs if job.state in WAITING]
    assert due == sorted(due)
    assert all(job.state in WAITING for job in page.jobs[: len(due)])
    back: Page = mixed.ask(job_pages.page, found.where, sort="-next", limit=99)
    assert [job.available_at or 0 for job in back.jobs[: len(due)]] == due[::-1]


def test_an_empty_store_is_an_empty_list(ground: Ground) -> None:
    found = look(ground, "")
    assert found.is_empty
    assert ground.ask(job_pages.page, found.where, total=0).jobs == []
