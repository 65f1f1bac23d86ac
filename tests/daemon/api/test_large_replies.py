"""Jobs and runs with much in them are shown as far as a message holds it, never refused."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from redrive.instants import iso
from redrive.job import METRICS_AT_MOST, RESULT_AT_MOST, TEXT_AT_MOST
from redrive.models import ErrorRecord, Run, plain
from redrive.protocol.codec import encode_answer
from redrive.protocol.commands import Act, RunOrder, Start
from redrive.protocol.envelope import MAX_MESSAGE, Reply
from redrive.protocol.queries import (
    EventPage,
    JobReply,
    ListEvents,
    ListJobs,
    ListRuns,
    ShowJob,
    ShowRun,
    Why,
)
from redrived.api import acting, jobs, runs, why
from redrived.api import events as api_events
from redrived.engine.engine import Engine
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.unit import Unit, to_json
from support.engine import TESTER
from support.engines import an_engine


class Past(msgspec.Struct):
    """Executions of job 1 that all failed, a requeue before every hundredth."""

    executions: int
    message: str = "no"


def lived(unit: Unit, items: Sequence[Past]) -> list[None]:
    for past in items:
        for n in range(1, past.executions + 1):
            if n % 100 == 0:
                unit.emit("job_requeued", job=1, state="queued", attempts=0)
            error = ErrorRecord(error_type="broken", category="unknown", message=past.message)
            unit.emit("action_started", job=1, attempt=n, state="leased", attempts=n)
            told: dict[str, Any] = {"error": {**plain(error), "timestamp": iso(n)}}
            unit.emit("action_error", job=1, attempt=n, data=told)
    return [None for _ in items]


async def a_job(engine: Engine, past: Past, **args: Any) -> None:
    new = NewJob(task="work", queue="default", args=msgspec.json.encode(args).decode())
    await engine.store.submit(enqueue, Order(jobs=[new]))
    await engine.store.submit(lived, past)


async def shown(engine: Engine) -> JobReply:
    reply = await jobs.show_job(engine, TESTER, ShowJob(id=1))
    assert is_told(reply)
    return reply


async def events_after(engine: Engine, seq: int, id: str | None) -> EventPage:
    return await api_events.list_events(engine, TESTER, ListEvents(after=seq, id=id))


def is_told(reply: Reply) -> bool:
    return len(encode_answer("an id", reply)) <= MAX_MESSAGE


async def test_a_job_with_a_long_past_is_shown_with_the_end_of_it(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await a_job(engine, Past(executions=3_210))
        history = (await shown(engine)).history

        assert [each.execution for each in history] == list(range(2_211, 3_211))
        assert [history[0].life, history[-1].life] == [23, 33]
        assert all(each.error and each.outcome == "failed" for each in history)


async def test_executions_with_much_to_say_are_shown_as_far_as_there_is_room(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path) as engine:
        await a_job(engine, Past(executions=300, message="x" * 20_000), text="a" * 1_000_000)
        history = (await shown(engine)).history

        assert 100 < len(history) < 160
        assert history[-1].execution == 300
        assert history[0].execution == 301 - len(history)


async def test_one_execution_is_shown_however_much_it_says(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await a_job(engine, Past(executions=2, message="x" * 2_500_000))
        assert [each.execution for each in (await shown(engine)).history] == [2]


async def many(engine: Engine, count: int, size: int) -> None:
    args = msgspec.json.encode({"text": "x" * size}).decode()
    order = Order(jobs=[NewJob(task="work", queue="default", args=args)] * count)
    await engine.store.submit(enqueue, order)


@pytest.mark.parametrize("sort", ["id", "-id", "-priority", "sort:next"])
async def test_a_page_of_large_jobs_ends_where_a_message_is_full(tmp_path: Path, sort: str) -> None:
    async with an_engine(tmp_path) as engine:
        await many(engine, 50, 100_000)
        asked = ListJobs(where=sort) if sort.startswith("sort") else ListJobs(sort=sort)
        first = await jobs.list_jobs(engine, TESTER, replace(asked, count=True))
        assert is_told(first)
        assert 30 < len(first.jobs) < 50
        assert first.total == 50

        second = await jobs.list_jobs(engine, TESTER, replace(asked, after=first.after))
        assert is_told(second)
        assert second.after is None
        ids = [job.id for job in first.jobs + second.jobs]
        assert ids == sorted(ids, reverse=sort.startswith("-"))
        assert len(ids) == len(set(ids)) == 50


async def test_a_jump_into_large_jobs_goes_on_from_where_it_ended(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await many(engine, 60, 100_000)
        page = await jobs.list_jobs(engine, TESTER, ListJobs(offset=10, limit=50, count=True))
        rest = await jobs.list_jobs(engine, TESTER, ListJobs(after=page.after))
        assert [job.id for job in page.jobs + rest.jobs] == list(range(50, 0, -1))


async def test_what_became_of_a_large_set_is_told_as_far_as_there_is_room(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await many(engine, count=3, size=1)
        wish = Act(verb="cancel", ids=[str(id) for id in range(1, 40_001)])
        acted = await acting.act(engine, TESTER, wish)
        assert is_told(acted)
        assert 0 < len(acted.outcomes) < 40_000
        assert (acted.done, acted.refused, acted.total) == (3, 39_997, 40_000)


async def test_a_page_has_one_job_at_least(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await many(engine, 5, 1_000_000)
        page = await jobs.list_jobs(engine, TESTER, ListJobs(limit=5))
        assert is_told(page)
        assert [job.id for job in page.jobs] == [5, 4, 3]


async def test_events_with_much_to_say_are_told_page_by_page(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await a_job(engine, Past(executions=300, message="x" * 20_000))
        for id in ("1", None):
            seqs: list[int] = []
            while (page := await events_after(engine, seqs[-1] if seqs else 0, id)).events:
                assert is_told(page)
                seqs += [event.seq for event in page.events]
            assert seqs == list(range(1, page.head + 1))


async def test_of_the_newest_events_as_many_are_told_as_there_is_room_for(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await a_job(engine, Past(executions=300, message="x" * 20_000))
        page = await api_events.list_events(engine, TESTER, ListEvents(last=1_000))
        assert is_told(page)
        seqs = [event.seq for event in page.events]
        assert 300 < len(seqs) < 500
        assert seqs == list(range(page.head + 1 - len(seqs), page.head + 1))


async def test_why_speaks_of_the_last_of_many_executions(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        await a_job(engine, Past(executions=50))
        assert is_told(await why.why(engine, TESTER, Why(id="1")))


class Step(msgspec.Struct):
    """What one step of run r1 says."""

    place: int
    result: Any = None
    metrics: dict[str, Any] = {}
    error: ErrorRecord | None = None


def said(unit: Unit, items: Sequence[Sequence[Step]]) -> list[None]:
    for step in (step for steps in items for step in steps):
        name, result = f"s{step.place}", to_json(step.result)
        state = "done" if step.error is None else "dead"
        unit.execute(
            "UPDATE steps SET state = :state, result = :result WHERE name = :name",
            name=name,
            state=state,
            result=result,
        )
        error = step.error and to_json(step.error)
        unit.execute("UPDATE jobs SET error = :error WHERE step = :name", error=error, name=name)
    measured = {f"s{step.place}": step.metrics for steps in items for step in steps}
    unit.execute("UPDATE runs SET metrics = :metrics", metrics=to_json(measured))
    return [None for _ in items]


@asynccontextmanager
async def a_run(folder: Path, *steps: Step) -> AsyncIterator[Engine]:
    """Of one pipeline, whose steps need each other not at all."""
    names = ", ".join(f'{{ name = "s{n}", task = "work", needs = [] }}' for n in range(len(steps)))
    config = f"[tasks.work]\ncommand = ['true']\n[pipelines.wide]\nsteps = [{names}]\n"
    async with an_engine(folder, config) as engine:
        await engine.pipelines.start()
        await runs.start_runs(engine, TESTER, Start(pipeline="wide", orders=[RunOrder()]))
        await engine.store.submit(said, steps)
        yield engine


async def shown_run(engine: Engine) -> Run:
    reply = await runs.show_run(engine, TESTER, ShowRun(id="r1"))
    page = await runs.list_runs(engine, TESTER, ListRuns())
    assert is_told(reply)
    assert is_told(page)
    assert page.runs == [reply.run]
    return reply.run


async def test_a_run_is_told_without_its_longest_results_where_they_do_not_fit(
    tmp_path: Path,
) -> None:
    small = [Step(n, result=n) for n in range(10)]
    large = [Step(n, result="x" * RESULT_AT_MOST) for n in range(10, 110)]
    async with a_run(tmp_path, *small, *large) as engine:
        run = await shown_run(engine)

    whole = [step.result for step in run.steps if step.result == "x" * RESULT_AT_MOST]
    short = [step for step in run.steps[10:] if step.result != "x" * RESULT_AT_MOST]
    assert [step.result for step in run.steps[:10]] == list(range(10))
    assert 55 < len(whole) < 60
    assert all(
        step.result == {"left_out": f"65,541 bytes, `redrive show {step.job}` has them"}
        for step in short
    )


async def test_a_run_is_told_with_the_end_of_its_errors_where_they_do_not_fit(
    tmp_path: Path,
) -> None:
    text = "x" * 20_000 + "the disk is full"
    error = ErrorRecord(error_type="broken", category="unknown", message=text, traceback=text)
    async with a_run(tmp_path, *(Step(n, error=error) for n in range(200))) as engine:
        errors = [step.error for step in (await shown_run(engine)).steps if step.error]

    short = [error for error in errors if error.traceback is None]
    assert len(errors) == 200
    assert 90 < len(short) < 120
    assert all(error.message.endswith("the disk is full") for error in short)


async def test_a_run_is_told_without_its_metrics_where_they_do_not_fit(tmp_path: Path) -> None:
    steps = [
        Step(n, metrics={f"{n}.{m}": "x" * TEXT_AT_MOST for m in range(METRICS_AT_MOST)})
        for n in range(250)
    ]
    async with a_run(tmp_path, *steps) as engine:
        run = await shown_run(engine)

    assert run.metrics is not None
    assert run.metrics.keys() == {"left_out"}
