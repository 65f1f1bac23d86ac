"""Why a job is where it is: every reason there is, in words."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redrive.instants import SECOND
from redrive.lifecycle import JobState
from redrive.models import Attempt, Decision, ErrorRecord, Job, Run, StepState
from redrive.protocol.commands import Enqueue, JobOrder, PauseIt
from redrive.protocol.queries import Why
from redrive.protocol.rows import GateRow, Pause
from redrived.api import pausing
from redrived.api.why import why
from redrived.engine.why import Circumstances, explain
from redrived.engine.why_ending import BeingEnded
from redrived.engine.why_run import explain_run
from redrived.store import actions
from support.engine import TESTER, running

NOW = 1_790_000_000 * SECOND


def job(**more: Any) -> Job:
    return Job(id=12, task="send", queue="mail", **{"max_attempts": 3, **more})


def facts(**more: Any) -> Circumstances:
    known: dict[str, Any] = {
        "now": NOW,
        "waits": "ready",
        "slots": 4,
        "workers": 1,
        "idle_workers": 1,
    }
    return Circumstances(**{**known, **more})


def pause(kind: str, name: str) -> Pause:
    return Pause(kind=kind, name=name, at=NOW, by="ann", why="vendor outage")


WAITING = [
    (facts(waits="held"), "held", "it is held"),
    (
        facts(waits="held", hold=pause("job", "12")),
        "held",
        "it is held by ann since 2026-09-21T14:13:20.000000Z: vendor outage",
    ),
    (facts(is_known=False), "no_task", "its task send is not in the config"),
    (
        facts(queue_pause=pause("queue", "mail")),
        "queue_paused",
        "queue mail is paused by ann since 2026-09-21T14:13:20.000000Z: vendor outage",
    ),
    (
        facts(task_pause=pause("task", "send")),
        "task_paused",
        "task send is paused by ann since 2026-09-21T14:13:20.000000Z: vendor outage",
    ),
    (
        facts(breaker="open", breaker_why="9 of 10 failed", probe_at=NOW),
        "breaker_open",
        "the breaker of send is open: 9 of 10 failed",
    ),
    (facts(is_draining=True), "draining", "the node drains and starts nothing more"),
    (facts(trouble="the disk is full"), "store", "the store is in trouble: the disk is full"),
    (
        facts(pool="py", workers=0, pool_trouble="no such interpreter"),
        "no_pool",
        "pool py has no worker that works: no such interpreter",
    ),
    (
        facts(pool="py", workers=0, starting_workers=1),
        "no_pool",
        "pool py has no worker that works: its first is starting",
    ),
    (
        facts(waits="key", limit_key="send/a", key_limit=2, key_running=2),
        "key_limit",
        "its key send/a has 2 of 2 running",
    ),
    (facts(task_limit=3, task_running=3), "task_limit", "task send has 3 of 3 running"),
    (facts(queue_limit=5, queue_running=5), "queue_limit", "queue mail has 5 of 5 running"),
    (
        facts(queue_rate_used=True, queue_rate="100/min", task_rate="1/s"),
        "rate",
        "queue mail has used up its rate of 100/min",
    ),
    (
        facts(waits="key", limit_key="send/a", task_rate_used=True, task_rate="1/s"),
        "rate",
        "task send has used up its rate of 1/s",
    ),
    (
        facts(busy=3, reserved=1),
        "slots",
        "all slots are taken: 3 of 4 busy, 1 kept for other queues",
    ),
    (
        facts(pool="py", workers=2, idle_workers=0),
        "pool",
        "all workers of pool py are busy: 2 of 2",
    ),
    (
        facts(pool="py", workers=2, idle_workers=0, starting_workers=1),
        "pool",
        "pool py is starting another worker",
    ),
    (facts(ahead=1), "order", "1 ready job goes before it"),
    (facts(ahead=7), "order", "7 ready jobs go before it"),
    (facts(), "ready", "it is ready and is leased in a moment"),
]


@pytest.mark.parametrize(("at", "code", "text"), WAITING)
def test_a_waiting_job_says_what_it_waits_for(at: Circumstances, code: str, text: str) -> None:
    told = explain(job(), at)
    assert (told.code, told.text, told.state) == (code, text, "queued")


@pytest.mark.parametrize("waits", ["due", "held", "batch", "key", "ready"])
def test_a_job_whose_task_is_gone_says_so_whatever_else_it_waits_for(waits: str) -> None:
    told = explain(job(available_at=NOW + 90 * SECOND), facts(waits=waits, is_known=False))
    assert (told.code, told.text) == ("no_task", "its task send is not in the config")


def test_a_scheduled_job_says_when() -> None:
    told = explain(job(available_at=NOW + 90 * SECOND), facts(waits="due"))
    assert told.code == "scheduled"
    assert told.text == "it is scheduled for 2026-09-21T14:14:50.000000Z, in 90 s"
    assert told.saw["in_seconds"] == 90


@pytest.mark.parametrize("state", [JobState.QUEUED, JobState.RETRY])
def test_a_snoozed_job_says_that_its_handler_asked_for_it(state: JobState) -> None:
    last = Attempt(execution=1, attempt=1, life=1, outcome="snoozed")
    waiting = job(state=state, attempts=1, available_at=NOW + 90 * SECOND)
    told = explain(waiting, facts(waits="due", last=last))
    assert (told.code, told.saw["in_seconds"]) == ("snoozed", 90)
    assert told.text == "its handler asked to wait until 2026-09-21T14:14:50.000000Z, in 90 s"


def test_a_retry_says_how_long_it_still_waits_and_what_decided_that() -> None:
    decision = Decision(retry=True, rule="http 503", because="attempt 1 of 3 failed with HTTP 503")
    last = Attempt(execution=1, attempt=1, life=1, decision=decision)
    retrying = job(state=JobState.RETRY, attempts=1, available_at=NOW + 41 * SECOND)

    told = explain(retrying, facts(waits="due", last=last))
    assert told.code == "backoff"
    assert told.text == (
        "Retrying (attempt 1/2), in 41 s; before that: execution 1 of 3 failed with HTTP 503"
    )
    assert told.decision == decision


@pytest.mark.parametrize(
    ("reason", "because"),
    [
        ("permanent", "attempt 1 of 3 failed with ValueError: not retried, it is permanent"),
        ("stop_when", "attempt 1 of 3 failed: not retried, stop_when is true"),
        ("poison", "attempt 3 of 5 was lost: not retried, it was lost 3 times"),
    ],
)
def test_a_dead_job_names_the_rule_and_what_it_saw(reason: str, because: str) -> None:
    decision = Decision(retry=False, rule=reason, because=because, saw={"attempt": 1})
    last = Attempt(execution=1, attempt=1, life=1, decision=decision)
    error = ErrorRecord(
        error_type="x", category="permanent", message="m", guidance="Mend the file."
    )
    dead = job(state=JobState.DEAD, reason=reason, error=error)

    told = explain(dead, facts(last=last))
    assert (told.code, told.text, told.saw) == (f"dead_{reason}", because, {"attempt": 1})
    assert told.hint.startswith("Mend the file. `redrive requeue 12")
    assert ("--force" in told.hint) == (reason == "permanent")


def test_a_dead_job_whose_data_is_cleared_first_names_the_job_that_does_so() -> None:
    told = explain(job(state=JobState.DEAD, reason="exhausted"), facts(cleared_by=13))
    assert told.code == "clearing"
    assert told.text == "it is requeued, and job 13 clears the data of its step first"
    assert "`redrive why 13`" in told.hint


def test_a_dead_job_whose_past_is_not_known_says_at_least_its_reason() -> None:
    told = explain(job(state=JobState.DEAD, reason="exhausted"), facts())
    assert told.text == "max retries exhausted"
    assert told.hint == "`redrive requeue 12` gives it another life"


def test_a_running_job_says_where_and_for_how_long() -> None:
    told = explain(
        job(state=JobState.LEASED, attempts=2, node="w1", started_at=NOW - 5 * SECOND), facts()
    )
    assert told.text == "it has been running for 5 s on node w1, attempt 2"
    in_hand = explain(job(state=JobState.LEASED, node="w1"), facts())
    assert in_hand.code == "in_hand"


ASKED: dict[str, Any] = {"since": NOW - 4 * SECOND, "by": "ann"}
SINCE = "by ann since 2026-09-21T14:13:16.000000Z"
BY_ITSELF: dict[str, Any] = {"since": NOW - 4 * SECOND, "grace": 6.0}


@pytest.mark.parametrize(
    ("end", "done", "next"),
    [
        (
            BeingEnded(why="cancel", grace=10.0, **ASKED),
            f"cancelled {SINCE}",
            "SIGKILL follows in 6 s, then it is cancelled",
        ),
        (
            BeingEnded(why="kill", **ASKED),
            f"killed {SINCE}",
            "SIGKILL was sent and its processes are about to go, then it is cancelled",
        ),
        (
            BeingEnded(why="restart", is_call=True, **ASKED),
            f"restarted {SINCE}",
            "its call is given up, then it runs again",
        ),
        (
            BeingEnded(why="timeout", **BY_ITSELF),
            "ended for its timeout since 2026-09-21T14:13:16.000000Z",
            "SIGKILL follows in 2 s, then its policy decides",
        ),
        (
            BeingEnded(why="cancel", by="ann"),
            "cancelled by ann",
            "its node ends its processes, then it is cancelled",
        ),
    ],
)
def test_a_job_that_is_being_ended_says_by_whom_since_when_and_what_comes_next(
    end: BeingEnded, done: str, next: str
) -> None:
    running = job(state=JobState.LEASED, attempts=2, node="w1", started_at=NOW - 5 * SECOND)
    told = explain(running, facts(end=end))
    assert (told.code, told.text) == ("ending", f"it is being {done}; {next}")
    assert told.saw["ending"] == end.why


def test_a_job_that_cannot_be_killed_says_so_and_where_to_look() -> None:
    end = BeingEnded(why="kill", unkillable=(4711, 4712), **ASKED)
    running = job(state=JobState.LEASED, attempts=2, node="w1", started_at=NOW - 5 * SECOND)
    told = explain(running, facts(end=end))
    what = f"SIGKILL does not end process 4711, 4712: it is being killed {SINCE}"
    assert (told.code, told.text) == ("unkillable", f"{what}; once that is gone, it is cancelled")
    assert "look at the disk or the NFS mount it waits for, or thaw it" in told.hint
    assert "ps -o pid,stat,wchan,args -p 4711,4712" in told.hint
    assert told.saw["unkillable"] == [4711, 4712]


@pytest.mark.parametrize("state", [JobState.DONE, JobState.CANCELLED])
def test_what_is_over_says_so(state: JobState) -> None:
    assert explain(job(state=state), facts()).code == state


@pytest.mark.parametrize(("n", "runs"), [(1, "1 run has"), (2, "2 runs have")])
def test_a_run_before_its_gate_says_how_many_it_waits_for(n: int, runs: str) -> None:
    steps = [StepState(name="download", state="gated")]
    run = Run(id="r7", pipeline="fetch", batch="b1", state="running", steps=steps)
    gate = GateRow(step="download", round=1, unsettled=n, waiting=3)
    told = explain_run(run, [gate])
    words = f"step download waits for its batch b1: {runs} not settled the steps before it"
    assert (told.code, told.text) == ("gate", words)


async def test_a_real_daemon_answers_with_what_holds(tmp_path: Path) -> None:
    config = """
[tasks.held]
command = ["true"]
[tasks.one]
command = ["sleep", "60"]
concurrency = 1
grace = "100ms"
"""
    async with running(tmp_path, config) as bench:
        await pausing.pause(bench.engine, TESTER, PauseIt(name="task:held", why="lunch"))
        [id] = await bench.enqueue("held")
        told = await why(bench.engine, TESTER, Why(id=str(id)))
        assert told.code == "task_paused"
        assert "lunch" in told.text

        first, second = await bench.enqueue("one", 2)
        await bench.event("action_started", first)
        told = await why(bench.engine, TESTER, Why(id=str(second)))
        assert (told.code, told.saw) == ("task_limit", {"running": 1, "limit": 1})


async def test_a_held_job_says_who_holds_it_until_it_is_released(tmp_path: Path) -> None:
    async with running(tmp_path, '[tasks.work]\ncommand = ["true"]') as bench:
        [id] = await bench.order(Enqueue(task="work", orders=[JobOrder(delay=60.0)]))

        async def act(verb: str, **more: Any) -> str:
            data = {key: value for key, value in more.items() if value}
            wish = actions.Act(verb=verb, jobs=[id], by="ann", data=data)
            await bench.engine.store.submit(actions.act, wish)
            return (await why(bench.engine, TESTER, Why(id=str(id)))).text

        told = await act("hold", reason="the customer asked")
        assert told.startswith("it is held by ann since ")
        assert told.endswith(": the customer asked")
        await act("release")
        assert (await act("hold")).startswith("it is held by ann since ")
        assert "customer" not in (await why(bench.engine, TESTER, Why(id=str(id)))).text


def test_guidance_that_ends_without_a_stop_does_not_run_into_the_hint() -> None:
    error = ErrorRecord(error_type="x", category="permanent", message="m", guidance="Buy more")
    told = explain(job(state=JobState.DEAD, reason="exhausted", error=error), facts())
    assert told.hint == "Buy more. `redrive requeue 12` gives it another life"


async def test_a_full_pool_and_a_used_rate_are_told_as_what_they_are(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text("import time\ndef nap(): time.sleep(60)\n")
    config = """
[pools.default]
path = ["."]
processes = 1
[tasks.nap]
python = "handlers:nap"
grace = "100ms"
[tasks.visit]
command = ["true"]
rate = "1/h"
concurrency_key = "{{ args.host }}"
"""
    async with running(tmp_path, config) as bench:

        async def reason(id: int) -> tuple[str, str]:
            told = await why(bench.engine, TESTER, Why(id=str(id)))
            return told.code, told.text

        first, second = await bench.enqueue("nap", 2)
        await bench.event("action_started", first)
        assert await reason(second) == ("pool", "all workers of pool default are busy: 1 of 1")

        visits = await bench.enqueue("visit", 3, host="a")
        await bench.ended(visits[0])
        used_up = ("rate", "task visit has used up its rate of 1/h")
        assert [await reason(id) for id in visits[1:]] == [used_up, used_up]
