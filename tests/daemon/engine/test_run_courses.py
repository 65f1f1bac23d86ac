"""Runs, batches and playbooks on a whole engine: what is asked for is what runs."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from redrive.config import ConfigRejected
from redrive.errors import NotFound, UsageProblem
from redrive.models import Run
from redrive.pipelines import Playbook, read_playbook
from redrive.protocol import codec, commands, queries, rehearsals
from redrive.protocol.envelope import MAX_MESSAGE
from redrived.api import acting, pipelines, rules, runs, status, why
from support.engine import TESTER, Bench, running

CONFIG = """
[tasks.say]
command = ["sh", "-c", "echo said"]
[tasks.fail]
command = ["sh", "-c", "echo no >&2; exit 64"]
[tasks.mend]
command = ["sh", "-c", "test -e mended"]

[pipelines.two]
shows = { queued = "PENDING", running = "WORKING", done = "COMPLETE", failed = "FAILED" }
steps = [ { name = "first", task = "say" }, { name = "second", task = "mend" } ]

[pipelines.batched]
steps = [
    { name = "request", task = "say" },
    { name = "download", task = "say", gate = "batch", delay = "50ms" },
]
"""


async def start(bench: Bench, pipeline: str, n: int = 1, **more: str) -> list[str]:
    orders = [commands.RunOrder(batch=more.get("batch"))] * n
    request = commands.Start(pipeline=pipeline, orders=orders)
    return (await runs.start_runs(bench.engine, TESTER, request)).runs


async def show(bench: Bench, id: str) -> Run:
    return (await runs.show_run(bench.engine, TESTER, queries.ShowRun(id=id))).run


async def over(bench: Bench, id: str, times: int = 1) -> Run:
    ends = ("execution_completed", "execution_failed")

    def ended() -> bool:
        return sum(each.type in ends and each.run == id for each in bench.heard) >= times

    await bench.until(ended, f"the end of {id}")
    return await show(bench, id)


async def test_a_page_of_runs_that_hold_much_ends_where_a_message_is_full(tmp_path: Path) -> None:
    later = '[pipelines.later]\nsteps = [{ name = "first", task = "say", delay = "1h" }]\n'
    async with running(tmp_path, CONFIG + later) as bench:
        wish = commands.RunOrder(args={"text": "x" * 100_000})
        request = commands.Start(pipeline="later", orders=[wish] * 50)
        started = (await runs.start_runs(bench.engine, TESTER, request)).runs

        first = await runs.list_runs(bench.engine, TESTER, queries.ListRuns())
        assert 30 < len(first.runs) < 50
        assert len(codec.encode_answer("an id", first)) <= MAX_MESSAGE
        rest = await runs.list_runs(bench.engine, TESTER, queries.ListRuns(after=first.after))
        assert rest.after is None
        assert [run.id for run in first.runs + rest.runs] == started[::-1]


async def test_a_run_fails_is_mended_and_resumes_at_the_failed_step(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        [id] = await start(bench, "two")
        failed = await over(bench, id)
        assert (failed.state, failed.status, failed.last_completed) == ("failed", "FAILED", "first")

        (tmp_path / "mended").touch()
        request = commands.Act(verb="requeue", ids=[id])
        [outcome] = (await acting.act(bench.engine, TESTER, request)).outcomes
        assert (outcome.id, outcome.done, outcome.state) == (id, True, "running")
        done = await over(bench, id, times=2)
        assert (done.state, done.status) == ("done", "COMPLETE")
        assert [step.attempts for step in done.steps] == [1, 1]


async def test_a_batch_goes_through_its_gate_by_itself(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        ids = await start(bench, "batched", 3, batch="b")
        for id in ids:
            assert (await over(bench, id)).state == "done"
        kinds = [each.type for each in bench.heard]
        assert kinds.count("gate_opened") == 1
        page = await runs.list_batches(bench.engine, TESTER, queries.ListBatches())
        assert (page.batches[0].done, page.batches[0].runs) == (3, 3)


async def test_a_gate_whose_timer_ran_out_while_nobody_was_there_opens_at_the_start(
    tmp_path: Path,
) -> None:
    long = CONFIG.replace('"50ms"', '"1s"')
    async with running(tmp_path, long) as bench:
        [id] = await start(bench, "batched", batch="b")
        await bench.event("action_completed")
    async with running(tmp_path, long) as bench:
        assert (await over(bench, id)).state == "done"


PLAYBOOK = """
name: report
workflow:
  - step: make
    type: shell
    command: ["sh", "-c", "exit 75"]
    retry: { max_attempts: 3, delays: [10ms] }
  - step: tell
    task: say
"""


async def add(bench: Bench, source: str) -> commands.Done:
    return await pipelines.add(bench.engine, TESTER, commands.AddPipeline(source=source))


@pytest.mark.parametrize("name", ["ünï x", "a\nb\x1b[31m", "x" * 300, ""])
async def test_a_name_beside_a_playbook_is_checked_like_one_in_it(
    tmp_path: Path, name: str
) -> None:
    async with running(tmp_path, CONFIG) as bench:
        request = commands.AddPipeline(source=PLAYBOOK, name=name)
        with pytest.raises(UsageProblem, match="expected a name of letters, digits"):
            await pipelines.add(bench.engine, TESTER, request)


async def test_a_large_playbook_is_read_while_the_loop_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[threading.Thread] = []

    def noted(*given: Any) -> Playbook:
        threads.append(threading.current_thread())
        return read_playbook(*given)

    monkeypatch.setattr("redrived.engine.pipelines.read_playbook", noted)
    async with running(tmp_path, CONFIG) as bench:
        await add(bench, PLAYBOOK)
    assert threads
    assert threading.main_thread() not in threads


async def test_a_playbook_brings_its_steps_and_their_policies_along(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        assert (await add(bench, PLAYBOOK)).data == {"name": "report", "version": 1}
        [id] = await start(bench, "report")
        run = await over(bench, id)

        assert run.state == "failed"
        assert (run.steps[0].attempts, run.steps[0].max_attempts) == (3, 3)
        job = await bench.job(run.steps[0].job or 0)
        assert (job.task, job.reason) == ("report.make@1", "exhausted")


async def test_a_run_keeps_the_version_it_began_with(tmp_path: Path) -> None:
    slow = PLAYBOOK.replace("[10ms]", "[200ms]")
    async with running(tmp_path, CONFIG) as bench:
        await add(bench, slow)
        [old] = await start(bench, "report")
        changed = slow.replace("exit 75", "true")
        assert (await add(bench, changed)).data["version"] == 2
        assert (await add(bench, changed)).data["version"] == 2
        [new] = await start(bench, "report")

        assert (await over(bench, old)).state == "failed"
        assert (await over(bench, new)).state == "done"


async def test_the_policy_of_a_step_is_found_by_its_name_and_version(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        for attempts in (3, 4):
            await add(bench, PLAYBOOK.replace("max_attempts: 3", f"max_attempts: {attempts}"))
        shown = {
            name: await rules.show_policy(bench.engine, TESTER, rehearsals.ShowPolicy(name=name))
            for name in ("report.make@2", "report.make", "two.first", "say")
        }
        counts = {name: reply.policy["max_attempts"] for name, reply in shown.items()}
        assert counts == {
            "report.make@2": 4,
            "report.make": 4,
            "two.first": 1,
            "say": 1,
        }
        with pytest.raises(NotFound, match=r"no policy or task 'report\.maek'"):
            await rules.show_policy(bench.engine, TESTER, rehearsals.ShowPolicy(name="report.maek"))


async def test_a_playbook_is_still_there_after_a_restart(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await add(bench, PLAYBOOK)
    async with running(tmp_path, CONFIG) as bench:
        [id] = await start(bench, "report")
        assert (await over(bench, id)).state == "failed"
        listed = await pipelines.list_pipelines(bench.engine, TESTER, queries.ListPipelines())
        assert [(row.name, row.version, row.origin) for row in listed.pipelines] == [
            ("batched", 1, "config"),
            ("report", 1, "playbook"),
            ("two", 1, "config"),
        ]


async def test_a_version_that_never_was_is_told_the_latest(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        asked = queries.ShowPipeline(name="two", version=9)
        with pytest.raises(NotFound, match="pipeline 'two' has no version 9") as refused:
            await pipelines.show(bench.engine, TESTER, asked)
        assert refused.value.hint == "the latest is 1"
        asked = queries.ShowPipeline(name="tow", version=9)
        with pytest.raises(NotFound, match="there is no pipeline 'tow'") as refused:
            await pipelines.show(bench.engine, TESTER, asked)
        assert refused.value.hint == "did you mean 'two'?"


async def test_a_broken_playbook_changes_nothing(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        with pytest.raises(ConfigRejected, match=r"playbook:5: workflow\[0\].task: unknown task"):
            await add(bench, "name: x\nworkflow:\n  - step: a\n\n    task: sya\n")
        with pytest.raises(NotFound, match="there is no pipeline 'x'"):
            await start(bench, "x")


async def test_why_says_what_a_run_waits_for(tmp_path: Path) -> None:
    long = CONFIG.replace('"50ms"', '"1h"')
    async with running(tmp_path, long) as bench:
        [id] = await start(bench, "batched", batch="b")
        await bench.event("action_completed")
        said = await why.why(bench.engine, TESTER, queries.Why(id=id))
        assert said.code == "gate_timer"
        assert said.text.startswith("step download waits for the gate of batch b, open at 20")
        seen = await status.status(bench.engine, TESTER, queries.Status())
        assert seen.due == []  # an hour is beyond what it looks at

        [other] = await start(bench, "two")
        await over(bench, other)
        said = await why.why(bench.engine, TESTER, queries.Why(id=other))
        assert (said.code, said.saw["step"]) == ("failed", "second")
        assert "`redrive requeue r2` resumes there" in said.hint
