"""A playbook whose steps the server retries, against a server that fails by plan."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.blocking import Client
from redrive.instants import SECOND, from_iso
from redrive.lifecycle import JobState
from redrive.protocol.commands import AddPipeline
from redrive.protocol.queries import ShowPipeline
from support.daemon import eventually
from support.examples import (
    Example,
    FlakyServer,
    MakeExample,
    check_that_no_retry_was_early,
    delays,
    story,
    told,
)


@pytest.fixture
def playbook(example: MakeExample) -> Example:
    return example("s2_playbook")


def add(client: Client, playbook: Example, **changes: str) -> int:
    """Register the playbook, with some of its text replaced; its version."""
    source = (playbook.folder / "playbook.yaml").read_text()
    for old, new in changes.items():
        source = source.replace(old, new)
    version: int = client.ask(AddPipeline(source=source)).data["version"]
    return version


def start(client: Client, server: FlakyServer, day: str = "monday") -> str:
    return client.start("report", {"server": server.url, "day": day}).first_id


def first_job(client: Client, run: str) -> int:
    job = client.run(run).steps[0].job
    assert job is not None
    return job


def fails(*answers: int, then: int = 200, takes: float = 0) -> dict[str, Any]:
    return {"path": "^/orders/", "answers": answers, "then": then, "takes": takes}


def test_the_golden_timeline_is_kept(playbook: Example, server: FlakyServer) -> None:
    server.plan(fails(503, 503, takes=1))
    with playbook.client() as client:
        add(client, playbook)
        run = start(client, server)
        assert client.wait(run) == {run: "done"}
        events = story(client, run)
        fetch = [event for event in events if event.job == first_job(client, run)]
        assert [(event.type, event.state, event.attempts) for event in fetch] == [
            ("step_started", "queued", 0),
            ("action_started", "leased", 1),
            ("action_error", "leased", 1),
            ("step_retry", "retry", 1),
            ("action_started", "leased", 2),
            ("action_error", "leased", 2),
            ("step_retry", "retry", 2),
            ("action_started", "leased", 3),
            ("action_completed", "done", 3),
        ]
        assert delays(fetch) == [1.0, 2.0]
        assert [event.data.get("is_retry", False) for event in fetch[1::3]] == [False, True, True]
        for retry in fetch[3:7:3]:
            due = from_iso(retry.data["available_at"])
            assert due - retry.at >= retry.data["delay"] * SECOND
        check_that_no_retry_was_early(fetch)
        following = events[events.index(fetch[-1]) + 1]
        assert (following.type, following.seq) == ("step_started", fetch[-1].seq + 1)


def test_when_the_last_attempt_fails_the_execution_fails(
    playbook: Example, server: FlakyServer
) -> None:
    server.plan(fails(then=503))
    with playbook.client() as client:
        add(client, playbook)
        run = start(client, server)
        assert client.wait(run) == {run: "failed"}
        events = story(client, run)
        assert told(events)[-4:] == [
            "action_error",
            "step_retry_exhausted",
            "step_failed_terminal",
            "execution_failed",
        ]
        assert delays(events) == [1.0, 2.0]
        assert client.run(run).status == "FAILED"


def test_stop_when_wins_over_retry_when(playbook: Example, server: FlakyServer) -> None:
    server.plan(fails(501))
    with playbook.client() as client:
        add(client, playbook)
        run = start(client, server)
        client.wait(run)
        dead = client.job(first_job(client, run))
        assert (dead.state, dead.reason, dead.attempts) == ("dead", "stop_when", 1)


def test_every_form_of_retry_means_its_number_of_attempts(
    playbook: Example, server: FlakyServer
) -> None:
    with playbook.client() as client:
        add(client, playbook)
        run = start(client, server, "friday")
        assert client.wait(run) == {run: "done"}
        shown = client.run(run)
        assert client.show_job(first_job(client, run)).policy.startswith("3 attempts, 1 s × 2")
        assert {step.name: step.max_attempts for step in shown.steps} == {
            "fetch": 3,  # a table
            "total": 4,  # true
            "sign": 5,  # a number
            "write": 1,  # false
            "publish": 1,  # absent
        }
        assert shown.status == "PUBLISHED"
    total = shown.steps[1].result["total"]
    written = (playbook.folder / "data" / "friday.txt").read_text()
    assert written.startswith(f"total {total}, signed {shown.steps[2].result['signature']}")


def test_the_same_pipeline_can_be_written_in_toml(playbook: Example) -> None:
    with playbook.client() as client:
        add(client, playbook)
        client.ask(AddPipeline(source=(playbook.folder / "playbook.toml").read_text()))
        yaml = client.ask(ShowPipeline(name="report"))
        toml = client.ask(ShowPipeline(name="report_toml"))
        assert str(toml.definition).replace("report_toml", "report") == str(yaml.definition)
        assert yaml.graph == toml.graph.replace("report_toml", "report")


def test_a_killed_daemon_keeps_retries_versions_and_steps(
    playbook: Example, server: FlakyServer
) -> None:
    server.plan(fails(503, 503))
    with playbook.client() as client:
        assert add(client, playbook) == 1
        run = start(client, server)
        job = first_job(client, run)
        eventually(lambda: client.job(job).state is JobState.RETRY, "it waits for its retry")
        assert add(client, playbook, **{"max_attempts: 3": "max_attempts: 2"}) == 2
    playbook.crash()
    with playbook.client() as client:
        assert client.wait(run) == {run: "done"}
        shown = client.run(run)
        assert (shown.version, shown.steps[0].attempts) == (1, 3)
        assert [step.state for step in shown.steps] == ["done"] * 5
        fetch = story(client, job)
        assert delays(fetch) == [1.0, 2.0]
        check_that_no_retry_was_early(fetch)
    assert server.answers == {"GET /orders/monday": [503, 503, 200], "POST /reports/monday": [200]}
