"""Attempts from end to end: run, fail, retry, die, stall, time out, be ended."""

from __future__ import annotations

import gc
from pathlib import Path

import pytest

from redrive.fingerprint import fingerprint
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act
from redrive.protocol.queries import ShowJob
from redrived.api import acting
from redrived.api.jobs import show_job
from redrived.engine.attempt import Ending
from redrived.processes.pool_worker import Worker
from redrived.store import actions, events
from support.daemon import soon
from support.engine import TESTER, running

TASKS = """
[pools.default]
path = ["."]
processes = 2

[retry.quick]
delays = ["20ms", "20ms"]
jitter = 0

[tasks.add]
python = "handlers:add"
[tasks.refuse]
python = "handlers:refuse"
retry = "quick"
[tasks.wordless]
python = "handlers:wordless"
[tasks.later]
python = "handlers:later"
[tasks.uses_new]
python = "uses_new:uses_new"
[tasks.invalid]
python = "handlers:invalid"
retry = "quick"
[tasks.snooze]
python = "handlers:snooze"
[tasks.vanish]
python = "handlers:vanish"
retry = 5
max_lost = 2
[tasks.hang]
python = "handlers:hang"
grace = "1s"
[tasks.silent]
python = "handlers:silent"
heartbeat = { from = "job", every = "50ms", stalled_after = "200ms" }
grace = "100ms"
[tasks.echo]
command = ["sh", "-c", "echo {{ args.text }}; echo oops >&2; exit {{ args.code }}"]
retry = "quick"
[tasks.sleep]
command = ["sleep", "60"]
grace = "1s"
[tasks.late]
command = ["sleep", "60"]
timeout = "200ms"
grace = "100ms"
[tasks.quiet]
command = ["sleep", "60"]
heartbeat = { from = "output", every = "50ms", stalled_after = "300ms" }
grace = "100ms"
[tasks.by_shell]
command = "echo $REDRIVE_ARG_X"
retry = "quick"
[tasks.metadata]
http = { url = "http://169.254.169.254/latest" }
retry = "quick"
[tasks.flood]
command = "yes"
limits = { output = "1M" }
[tasks.burst]
command = "head -c 2000000 /dev/zero"
retry = "quick"
limits = { output = "1M" }
[tasks.burst_and_fail]
command = "head -c 2000000 /dev/zero; exit 75"
retry = "quick"
limits = { output = "1M" }
[tasks.hold_and_burst]
command = "trap 'head -c 2000000 /dev/zero; exit' TERM; sleep 60 & wait"
limits = { output = "1M" }
grace = "5s"
[tasks.shout]
python = "handlers:shout"
retry = "quick"
limits = { output = "1M" }
[tasks.shout_and_vanish]
python = "handlers:shout_and_vanish"
retry = "quick"
limits = { output = "1M" }
"""

HANDLERS = """
import os, time
import redrive

def add(a, b):
    print("adding")
    return {"sum": a + b}

def refuse():
    raise ConnectionError("connection refused by db2")

def wordless():
    raise RuntimeError

def invalid():
    raise ValueError("no such column")

def snooze():
    job = redrive.current_job()
    if job.once("slept"):
        raise redrive.Snooze(0.05)
    return job.attempt

def vanish():
    os._exit(7)

def hang():
    time.sleep(60)

def shout():
    print("x" * 2_000_000)

def shout_and_vanish():
    shout()
    os._exit(7)

def silent():
    redrive.current_job().heartbeat()
    time.sleep(60)
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "handlers.py").write_text(HANDLERS)
    return tmp_path


LEAKS = """
[tasks.leak]
command = "echo cannot log in as $NAME with $TOKEN >&2; exit 1"
env = { NAME = "app", TOKEN = "${TOKEN}" }
retry = { max_attempts = 2, delays = ["10ms"], stop_when = "'hunter2' in error" }
"""


async def test_s22_what_came_from_the_environment_is_in_no_error_and_no_event(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOKEN", "hunter2!")
    async with running(folder, LEAKS) as bench:
        [id] = await bench.enqueue("leak")
        assert (await bench.failed(id)).message == "cannot log in as app with [redacted]"
        stored = await bench.engine.store.read(events.after, 0, 100)
        assert "hunter2" not in repr(stored)
        assert "hunter2!" in repr(bench.engine.outputs.read(id, 1))  # which is shown as it was


async def test_a_python_job_runs_and_keeps_its_result_and_output(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("add", a=1, b=2)
        job = await bench.ended(id)

        assert (job.state, job.result, job.attempts) == (JobState.DONE, {"sum": 3}, 1)
        assert await bench.told(id) == ["step_started", "action_started", "action_completed"]
        page = bench.engine.outputs.read(id, 1)
        assert b"".join(chunk.data for chunk in page.chunks) == b"adding\n"


async def test_a_transient_failure_is_tried_until_nothing_is_left(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("refuse")
        job = await bench.ended(id)

        assert (job.state, job.reason, job.attempts) == (JobState.DEAD, "exhausted", 3)
        assert job.error is not None
        assert (job.error.error_type, job.error.retry_count) == ("connection_error", 2)
        failed = ["action_started", "action_error"]
        assert await bench.told(id) == [
            "step_started",
            *failed,
            "step_retry",
            *failed,
            "step_retry",
            *failed,
            "step_retry_exhausted",
        ]


async def test_an_error_without_a_message_is_told_by_its_name(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("wordless")
        error = await bench.failed(id)

        assert (error.message, error.error_type) == ("RuntimeError", "unknown")
        assert error.fingerprint == fingerprint("unknown", "", error.traceback)


LATER = """
def later():
    return {"from": "the new code"}
"""


async def test_a_function_that_was_added_while_its_worker_ran_is_found_by_a_fresh_one(
    folder: Path,
) -> None:
    async with running(folder, TASKS) as bench:
        [early] = await bench.enqueue("later")
        assert (await bench.ended(early)).reason == "permanent"

        (folder / "handlers.py").write_text(HANDLERS + LATER)
        [id] = await bench.enqueue("later")
        job = await bench.ended(id)
        assert (job.state, job.attempts, job.result) == ("done", 1, {"from": "the new code"})


async def test_a_new_module_that_needs_new_code_of_another_is_imported_by_a_fresh_worker(
    folder: Path,
) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("add", a=1, b=2)
        await bench.ended(id)

        (folder / "handlers.py").write_text(HANDLERS + LATER)
        (folder / "uses_new.py").write_text("from handlers import later as uses_new")
        [id] = await bench.enqueue("uses_new")
        assert (await bench.ended(id)).result == {"from": "the new code"}


async def test_a_function_that_is_in_no_code_fails_for_good(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("add", a=1, b=2)
        await bench.ended(id)

        (folder / "handlers.py").write_text(HANDLERS + "\n")
        [id] = await bench.enqueue("later")
        job = await bench.ended(id)
        assert (job.state, job.reason, job.attempts) == ("dead", "permanent", 1)
        assert job.error is not None
        assert "has no attribute 'later'" in job.error.message


async def test_a_permanent_failure_is_dead_at_once(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("invalid")
        job = await bench.ended(id)

        assert (job.state, job.reason, job.attempts) == (JobState.DEAD, "permanent", 1)


APART = "give them names that differ by more than case and punctuation"
ENCODED = "which no argument can; encode it, as base64 say"
METADATA = "http://169.254.169.254/latest"
ALLOWED = "see `allow_link_local`"


async def test_what_cannot_be_run_as_it_is_is_dead_at_once_and_says_why(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [shell] = await bench.enqueue("by_shell", x=1, X=2)
        [words] = await bench.enqueue("echo", text="a\0b", code=0)
        [call] = await bench.enqueue("metadata")
        ended = [await bench.ended(id) for id in (shell, words, call)]

        assert [job.reason for job in ended] == ["permanent"] * 3
        errors = [(job.error.error_type, job.error.message) for job in ended if job.error]
        assert errors == [
            ("validation_error", f"arguments 'x' and 'X' would both be $REDRIVE_ARG_X; {APART}"),
            ("validation_error", f"word 2 of the command holds a NUL character, {ENCODED}"),
            ("config_error", f"GET {METADATA}: 169.254.169.254 is a link-local address; {ALLOWED}"),
        ]


async def test_a_snooze_does_not_use_up_an_attempt_and_once_is_once(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("snooze")
        job = await bench.ended(id)

        assert (job.state, job.attempts, job.result) == (JobState.DONE, 1, 1)
        assert job.budgets is not None
        assert job.budgets.snoozes == 1


async def test_a_job_that_kills_its_worker_again_and_again_is_poison(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("vanish")
        await bench.event("step_retry", id)
        await bench.engine.store.submit(actions.act, actions.Act(verb="run-now", jobs=[id], by="t"))
        job = await bench.ended(id)

        assert (job.state, job.reason) == (JobState.DEAD, "poison")
        assert job.budgets is not None
        assert job.budgets.lost == 2
        assert (await bench.told(id)).count("action_lost") == 2


async def test_a_worker_that_left_with_empty_hands_is_not_kept(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        for id in await bench.enqueue("silent", count=3):
            await bench.ended(id)

        [pool] = bench.engine.python.pools.values()
        gc.collect()
        kept = [each for each in gc.get_objects() if isinstance(each, Worker)]
        assert {worker.number for worker in kept} == {worker.number for worker in pool.workers}


async def test_a_command_keeps_both_streams_and_its_message_is_stderr(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("echo", text="hello", code=65)
        job = await bench.ended(id)

        assert (job.state, job.reason) == (JobState.DEAD, "permanent")
        assert job.error is not None
        assert job.error.message == "oops"
        page = bench.engine.outputs.read(id, 1)
        assert [(chunk.stream, chunk.data) for chunk in page.chunks] == [
            ("out", b"hello\n"),
            ("err", b"oops\n"),
        ]


@pytest.mark.parametrize(
    ("task", "noticed", "error_type"),
    [
        ("late", "action_timeout", "timeout"),
        ("quiet", "action_stalled", "stalled"),
        ("silent", "action_stalled", "stalled"),
    ],
)
async def test_what_is_noticed_is_written_down_before_it_is_ended(
    folder: Path, task: str, noticed: str, error_type: str
) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue(task)
        job = await bench.ended(id)

        assert job.state is JobState.DEAD
        assert job.error is not None
        assert job.error.error_type == error_type
        told = [kind for kind in await bench.told(id) if kind != "heartbeat_late"]
        assert told[1:] == [
            "action_started",
            noticed,
            "action_error",
            "step_retry_exhausted",
        ]


@pytest.mark.parametrize("task", ["flood", "burst", "burst_and_fail", "shout", "shout_and_vanish"])
async def test_an_attempt_that_writes_too_much_fails_however_soon_it_ends(
    folder: Path, task: str
) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue(task)
        job = await bench.ended(id)

        assert job.error is not None
        assert (job.state, job.reason, job.attempts) == (JobState.DEAD, "permanent", 1)
        assert job.error.error_type == "log_limit"
        assert job.error.message == (
            "it wrote more than 1048576 bytes of output; see `limits.output`"
        )
        assert bench.engine.outputs.read(id, 1).size == 1024 * 1024


async def test_what_a_job_printed_goes_when_it_is_discarded(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        ids = await bench.enqueue("shout", 2)
        for id in ids:
            assert (await bench.ended(id)).state is JobState.DEAD
        discard = Act(verb="discard", ids=[str(ids[0])])
        await acting.act(bench.engine, TESTER, discard)

        sizes = [bench.engine.outputs.read(id, 1).size for id in ids]
        assert sizes == [0, 1024 * 1024]


async def test_a_burst_does_not_undo_a_cancel(folder: Path) -> None:
    """What a person asked for is what the job became, whatever it printed meanwhile."""
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue("hold_and_burst")
        await bench.event("action_started", id)
        await acting.act(bench.engine, TESTER, Act(verb="cancel", ids=[str(id)]))

        assert (await bench.ended(id)).state is JobState.CANCELLED


@pytest.mark.parametrize("task", ["sleep", "hang"])
@pytest.mark.parametrize(("verb", "event"), [("cancel", "job_cancelled"), ("kill", "job_killed")])
async def test_a_running_job_can_be_ended(folder: Path, task: str, verb: str, event: str) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue(task)
        await bench.event("action_started", id)
        await acting.act(bench.engine, TESTER, Act(verb=verb, ids=[str(id)], reason="wrong file"))
        job = await bench.ended(id)

        assert job.state is JobState.CANCELLED
        last = (await bench.event(event, id)).data
        assert (last["by"], last["reason"]) == ("tester", "wrong file")


@pytest.mark.parametrize("task", ["sleep", "hang"])
async def test_what_a_running_job_uses_is_shown_and_of_no_other(folder: Path, task: str) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue(task)
        await soon(lambda: bench.engine.attempts.get(id) is not None, "it runs")
        attempt = bench.engine.attempts.get(id)
        assert attempt is not None
        usage = (await show_job(bench.engine, TESTER, ShowJob(id=id))).usage
        assert usage is not None
        assert usage.pids == attempt.executor.pids()
        assert usage.memory > 100_000
        assert 0 <= usage.cpu < 300
        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id)]))
        await bench.ended(id)
        assert (await show_job(bench.engine, TESTER, ShowJob(id=id))).usage is None


@pytest.mark.parametrize("task", ["sleep", "hang"])
async def test_a_restart_runs_again_at_no_cost(folder: Path, task: str) -> None:
    async with running(folder, TASKS) as bench:
        [id] = await bench.enqueue(task)
        await bench.event("action_started", id)
        await acting.act(bench.engine, TESTER, Act(verb="restart", ids=[str(id)]))
        await bench.event("action_started", id, n=2)

        job = await bench.job(id)
        assert (job.state, job.attempts) == (JobState.LEASED, 1)
        assert "job_restarted" in await bench.told(id)
        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id)]))
        await bench.ended(id)


async def test_a_redrive_gives_a_set_another_life_and_counts_how_it_goes(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        ids = await bench.enqueue("invalid", 3)
        for id in ids:
            await bench.ended(id)
        bench.heard.clear()

        acted = await acting.act(
            bench.engine, TESTER, Act(verb="requeue", where="state:dead", force=True, canary=1)
        )
        assert (acted.redrive, acted.total) == (1, 3)
        stopped = await bench.event("redrive_stopped")
        assert stopped.data["why"] == "the canary failed: 1 of 1"
        lives = [(await bench.job(id)).life for id in ids]
        assert sorted(lives) == [1, 1, 2]


async def test_the_engine_is_idle_once_its_last_handler_was_interrupted(folder: Path) -> None:
    async with running(folder, TASKS) as bench:
        engine = bench.engine
        [id] = await bench.enqueue("hang")
        workers = engine.python.pools["default"].workers
        await soon(
            lambda: any(
                (last := worker.process.begun_last()) and last.job == id for worker in workers
            ),
            "the handler runs",
        )
        idle: list[bool] = []
        engine.settler.when_freed.append(lambda: idle.append(engine.is_idle))
        engine.drain(stop=False)
        [attempt] = engine.attempts
        engine.ender.end(attempt, Ending.DRAIN, "the daemon was stopped")
        await bench.event("job_interrupted", id)

        await soon(lambda: idle[-1:] == [True], "whoever was told last found it idle")
        assert (await bench.job(id)).state is JobState.QUEUED
