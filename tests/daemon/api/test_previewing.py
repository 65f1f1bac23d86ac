"""A preview says what the verb would do: the same rules, nothing changed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redrive.errors import UsageProblem
from redrive.protocol.commands import Act, Enqueue, JobOrder, Outcome, RunOrder, Start
from redrive.protocol.rehearsals import Preview, PreviewReply
from redrive.protocol.rows import RunPlan
from redrived.api import acting, runs
from redrived.api.previewing import preview
from support.engine import TESTER, Bench, running

CONFIG = """
[retry.once]
max_attempts = 1
[tasks.fine]
command = ["true"]
[tasks.check]
command = "test -e up"
retry = "once"
[tasks.never]
command = "exit 64"
[pipelines.three]
steps = [
  { name = "fetch", task = "fine" },
  { name = "parse", task = "check" },
  { name = "store", task = "fine" },
]
[pipelines.waiting]
steps = [{ name = "first", task = "fine", delay = "1h" }, { name = "second", task = "fine" }]
"""
VERBS = ["requeue", "cancel", "kill", "restart", "run-now", "hold", "release", "discard"]


async def asked(bench: Bench, verb: str, *ids: int, **more: Any) -> PreviewReply:
    request = Preview(verb=verb, ids=list(ids), **more)
    return await preview(bench.engine, TESTER, request)


async def of_run(bench: Bench, verb: str, run: str, **more: Any) -> tuple[PreviewReply, RunPlan]:
    reply = await asked(bench, verb, runs=[run], **more)
    (plan,) = reply.runs
    return reply, plan


async def done(bench: Bench, verb: str, *ids: int | str, **more: Any) -> list[Outcome]:
    request = Act(verb=verb, ids=list(map(str, ids)), **more)
    return (await acting.act(bench.engine, TESTER, request)).outcomes


async def a_run(bench: Bench, state: str, pipeline: str = "three") -> str:
    request = Start(pipeline=pipeline, orders=[RunOrder()])
    id = (await runs.start_runs(bench.engine, TESTER, request)).first_id
    if state != "running":
        await bench.event("execution_completed" if state == "done" else "execution_failed")
    return id


async def test_of_a_failed_run_the_jobs_counted_are_those_of_the_steps_run_again(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, CONFIG) as bench:
        run = await a_run(bench, "failed")
        reply, plan = await of_run(bench, "requeue", run)
    assert (plan.steps, plan.refused) == (["parse", "store"], None)
    assert (reply.total, reply.fits, reply.by_state) == (2, 1, {"done": 1, "dead": 1})
    assert reply.excluded == {"its step is not run again": 1}
    assert [job.step for job in reply.sample] == ["parse"]


@pytest.mark.parametrize(
    ("step", "steps", "fits"),
    [("fetch", ["fetch", "parse", "store"], 3), ("parse", ["parse", "store"], 2)],
)
async def test_from_a_step_on_its_jobs_count_whatever_state_they_are_in(
    tmp_path: Path, step: str, steps: list[str], fits: int
) -> None:
    (tmp_path / "up").touch()
    async with running(tmp_path, CONFIG) as bench:
        run = await a_run(bench, "done")
        reply, plan = await of_run(bench, "requeue", run, from_step=step, again=True)
        assert (plan.steps, reply.fits, reply.total) == (steps, fits, 3)

        bench.heard.clear()
        [outcome] = await done(bench, "requeue", run, from_step=step, again=True)
        assert outcome.done
        await bench.event("execution_completed")
        assert [event.type for event in bench.heard].count("step_started") == fits


async def test_a_run_that_would_be_refused_says_why_and_counts_nothing(tmp_path: Path) -> None:
    (tmp_path / "up").touch()
    async with running(tmp_path, CONFIG) as bench:
        run = await a_run(bench, "done")
        for more, why in [
            ({}, "it has results of fetch, parse, store"),
            ({"from_step": "prase"}, "'three' has no step 'prase'"),
        ]:
            reply, plan = await of_run(bench, "requeue", run, **more)
            assert plan.refused is not None
            assert why in plan.refused
            assert (reply.fits, reply.total) == (0, 3)
        _, plan = await of_run(bench, "cancel", run)
        assert plan.refused is not None
        assert plan.refused.startswith("it is done")


async def test_what_is_for_runs_only_is_refused_for_jobs_and_the_other_way_round(
    tmp_path: Path,
) -> None:
    async with running(tmp_path, CONFIG) as bench:
        with pytest.raises(UsageProblem, match="only runs have steps"):
            await asked(bench, "requeue", 1, runs=["r1"], from_step="parse")
        with pytest.raises(UsageProblem, match="only runs have steps"):
            await done(bench, "requeue", 1, "r1", from_step="parse")
        for option in ({"canary": 1}, {"pace": "5/min"}, {"stop_at": 0.2}):
            with pytest.raises(UsageProblem, match="runs are requeued at once"):
                await done(bench, "requeue", "r1", **option)


async def test_of_a_run_that_waits_a_cancel_ends_every_step(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        run = await a_run(bench, "running", "waiting")
        reply, plan = await of_run(bench, "cancel", run)
        assert (plan.steps, reply.fits) == (["first", "second"], 1)
        _, held = await of_run(bench, "hold", run)
        assert held.steps == ["first"]
        _, dropped = await of_run(bench, "discard", run)
        assert dropped.refused is not None


async def test_what_does_not_exist_is_left_out_of_the_count(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        reply = await asked(bench, "cancel", 99, runs=["r99"])
    assert (reply.total, reply.fits) == (1, 0)
    assert reply.excluded == {"there is no such job": 1}
    assert reply.runs == [RunPlan(id="r99", refused="there is no such run")]


async def test_a_preview_and_the_verb_agree_about_every_job(tmp_path: Path) -> None:
    """Waiting, held, done, dead, dead for good, requeued just before, gone."""
    for verb in VERBS:
        folder = tmp_path / verb
        folder.mkdir()
        async with running(folder, CONFIG) as bench:
            ids = await every_kind(bench)
            reply = await asked(bench, verb, *ids)
            outcomes = await done(bench, verb, *ids)
            refused = [each.refused.message for each in outcomes if each.refused]
            assert reply.fits == sum(each.done for each in outcomes), verb
            assert reply.excluded == {why: refused.count(why) for why in refused}, verb


async def every_kind(bench: Bench) -> list[int]:
    [fine] = await bench.enqueue("fine")
    [dead] = await bench.enqueue("check")
    [hopeless] = await bench.enqueue("never")
    [again] = await bench.enqueue("check")
    for id in (fine, dead, hopeless, again):
        await bench.ended(id)
    await done(bench, "requeue", again)
    await bench.event("step_retry_exhausted", again, n=2)
    later = Enqueue(task="fine", orders=[JobOrder(delay=3600.0)], count=2)
    waiting, held = await bench.order(later)
    await done(bench, "hold", held)
    return [fine, dead, hopeless, again, waiting, held, 999]
