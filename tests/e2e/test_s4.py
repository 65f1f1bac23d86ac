"""A thousand items requested, then downloaded, in two queues and as one batch."""

from __future__ import annotations

import json
from typing import Any

import pytest

from redrive.blocking import Client
from redrive.instants import SECOND
from redrive.lifecycle import JobState
from redrive.models import Event, Run
from redrive.protocol.commands import JobOrder, RunOrder
from redrive.protocol.queries import ListBatches
from support.daemon import eventually
from support.examples import (
    EXAMPLES,
    Example,
    FlakyServer,
    MakeExample,
    check_that_no_retry_was_early,
    delays,
    story,
    told,
)

QUICK = {"FIRST_DELAY": "0.2", "SECOND_DELAY": "0.4", "THIRD_DELAY": "0.6"}


def start_batch(client: Client, items: int, batch: str = "november") -> None:
    orders = [RunOrder(args={"item": f"{n:04}"}, key=f"{n:04}", batch=batch) for n in range(items)]
    client.start_many("campaign", orders)


def runs_of(client: Client, batch: str = "november") -> list[Run]:
    runs: list[Run] = []
    after = None
    while True:
        page = client.runs(f"batch:{batch}", limit=500, after=after)
        runs += page.runs
        after = page.after
        if after is None:
            return runs


def wait_for_the_batch(client: Client) -> list[Run]:
    eventually(lambda: client.runs("state:running", limit=1).runs == [], "all runs are over")
    return runs_of(client)


def of_step(events: list[Event], runs: list[Run], step: int) -> list[Event]:
    jobs = {run.steps[step].job for run in runs} - {None}
    return [event for event in events if event.job in jobs]


def last(events: list[Event], kind: str) -> int:
    return max(event.at for event in events if event.type == kind)


def first(events: list[Event], kind: str, **like: Any) -> int:
    return min(
        event.at
        for event in events
        if event.type == kind and all(getattr(event, name) == it for name, it in like.items())
    )


def scheduled_download(runs: list[Run]) -> int:
    """When the downloads were to begin: all at the same instant."""
    instants = {step.scheduled_for for run in runs if (step := run.steps[1]).job is not None}
    (instant,) = instants
    assert instant is not None
    return instant


@pytest.fixture
def plan(server: FlakyServer) -> FlakyServer:
    """The server, with the failures of the example."""
    server.plan(*json.loads((EXAMPLES / "s4_campaign" / "plan.json").read_text()))
    return server


def test_a_thousand_items_go_through_the_gate_once_and_a_crash_repeats_no_download(
    example: MakeExample, plan: FlakyServer
) -> None:
    campaign = example("s4_campaign", SERVER=plan.url, DOWNLOAD_AFTER="1s", **QUICK)
    with campaign.client() as client:
        start_batch(client, 1000)
        eventually(lambda: _downloads(campaign) > 100, "downloads are coming in")
        plan.set_outage(True)
        eventually(lambda: plan.hanging == 5, "all slots of bulk wait for the service")
    campaign.kill()
    plan.set_outage(False)
    campaign.start()
    with campaign.client() as client:
        runs = wait_for_the_batch(client)
        events = story(client)
        check_the_fates_of_a_thousand(runs, plan)
        check_the_phases(events, runs)
        check_the_counts(client)
        check_the_retries(client, runs)
    assert _downloads(campaign) == 970


def _downloads(campaign: Example) -> int:
    return len(list((campaign.folder / "data" / "downloads").glob("*.json")))


def check_the_fates_of_a_thousand(runs: list[Run], server: FlakyServer) -> None:
    """Ten are refused, ten are never answered; of the others ten cannot be downloaded."""
    assert len(runs) == 1000
    skipped = [run for run in runs if run.steps[1].state == "skipped"]
    assert len(skipped) == 20
    assert {run.steps[1].why for run in skipped} == {"Request failed; download skipped"}
    assert {run.key[-2:] for run in skipped if run.key} == {"13", "66"}
    lost = [run for run in runs if run.steps[1].state == "dead"]
    assert {run.key[-2:] for run in lost if run.key} == {"21"}
    assert [run.state for run in runs].count("done") == 970
    answers = server.answers
    for run in runs:
        assert answers.get(f"GET /downloads/{run.key}", []).count(200) == (run.state == "done")
        assert answers[f"POST /requests/{run.key}"].count(200) <= 1


def check_the_phases(events: list[Event], runs: list[Run]) -> None:
    """All requests, the timer, all downloads, then their retries."""
    requests, downloads = (of_step(events, runs, step) for step in (0, 1))
    (opened,) = [event for event in events if event.type == "gate_opened"]
    assert opened.data["runs"] == 980
    settled = max(last(requests, "action_completed"), last(requests, "step_retry_exhausted"))
    scheduled = scheduled_download(runs)
    assert scheduled >= settled + 1 * SECOND
    assert first(downloads, "step_started") >= scheduled
    passed = [event for event in downloads if event.type == "action_started" and event.attempt == 1]
    assert len(passed) == 980
    assert first(downloads, "action_started", attempt=2) >= max(event.at for event in passed)


def check_the_counts(client: Client) -> None:
    [batch] = client.ask(ListBatches()).batches
    assert (batch.runs, batch.running, batch.done, batch.failed) == (1000, 0, 970, 30)
    assert batch.phases == {
        "request": {"done": 980, "dead": 20},
        "download": {"done": 970, "dead": 10, "skipped": 20},
    }


def check_the_retries(client: Client, runs: list[Run]) -> None:
    """Of a request that was never answered: each bumps its attempts and its last attempt."""
    run = next(run for run in runs if run.key == "0066")
    job = client.job(run.steps[0].job or 0)
    events = story(client, job.id)
    assert delays(events) == [0.2, 0.4, 0.6]
    check_that_no_retry_was_early(events)
    starts = [event for event in events if event.type == "action_started"]
    assert [event.attempts for event in starts] == [1, 2, 3, 4]
    assert (job.state, job.reason, job.last_attempt_at) == ("dead", "exhausted", starts[-1].at)
    assert (job.queue, job.operation, job.mode) == ("bulk", "request", "bulk")


def test_a_timer_that_runs_survives_the_daemon(example: MakeExample, server: FlakyServer) -> None:
    campaign = example("s4_campaign", SERVER=server.url, DOWNLOAD_AFTER="4s", **QUICK)
    with campaign.client() as client:
        start_batch(client, 5)

        def requested() -> bool:
            return all(run.steps[0].state == "done" for run in runs_of(client))

        eventually(requested, "every request is settled")
    campaign.crash()
    with campaign.client() as client:
        runs = wait_for_the_batch(client)
        events = story(client)
        settled = last(of_step(events, runs, 0), "action_completed")
        scheduled = scheduled_download(runs)
        assert scheduled >= settled + 4 * SECOND
        assert first(of_step(events, runs, 1), "action_started") >= scheduled
        assert told(events).count("gate_opened") == 1


def test_a_single_download_is_scheduled_absolutely_and_its_retries_do_not_move_it(
    example: MakeExample, server: FlakyServer
) -> None:
    server.plan({"path": "^/downloads/", "answers": [503]})
    campaign = example("s4_campaign", SERVER=server.url, DOWNLOAD_AFTER="3s", **QUICK)
    with campaign.client() as client:
        run = client.start("single", {"item": "7"}).first_id
        eventually(lambda: client.run(run).steps[1].job, "the download is scheduled")
    campaign.crash()
    with campaign.client() as client:
        assert client.wait(run) == {run: "done"}
        request, download = client.run(run).steps
        events = story(client, download.job)
        done = last(story(client, request.job), "action_completed")
        due = done + 3 * SECOND
        assert download.scheduled_for == due
        assert first(events, "action_started") >= due
        job = client.job(download.job or 0)
        assert (job.queue, job.operation, job.mode) == ("manual", "download", "manual")
        assert job.scheduled_for == due
        assert download.attempts == 2


def test_the_waits_are_those_of_the_campaign_unless_the_environment_says_otherwise(
    example: MakeExample,
) -> None:
    campaign = example("s4_campaign", SERVER="http://127.0.0.1:1")
    policy = json.loads(campaign.run("policy", "service", "--json").stdout)
    assert [attempt["delay"] for attempt in policy["timeline"]] == [0, 60, 180, 300]
    shown = campaign.run("pipeline", "show", "campaign").stdout
    assert "15m after, gate of the batch" in shown


def test_people_go_first_and_requests_before_downloads(
    example: MakeExample, server: FlakyServer
) -> None:
    campaign = example("s4_campaign", SERVER=server.url, DOWNLOAD_AFTER="0s", **QUICK)
    server.plan({"path": "/", "takes": 0.05})  # too long to be handed over by the dozen
    server.set_outage(True)
    with campaign.client() as client:
        client.enqueue_many("download", [_order(n) for n in range(20)])
        eventually(lambda: server.hanging == 5, "bulk has all the slots it may have")
        client.enqueue_many("request", [_order(n) for n in range(20)])
        person = client.enqueue("request", {"item": "99"}, queue="manual").id
        eventually(
            lambda: client.job(person).state is JobState.LEASED, "the reserved slot is taken"
        )
        server.set_outage(False)
        eventually(lambda: client.status().states["done"] == 41, "all are done")
        operations = {job.id: job.operation for job in client.jobs("queue:bulk", limit=100).jobs}
        starts = sorted(
            (event.at, operations[event.job])
            for event in story(client)
            if event.type == "action_started" and event.attempt == 1 and event.job in operations
        )
        order = [operation for _, operation in starts]
        # Five downloads ran before there was a request; the last requests run beside downloads.
        assert order[:5] == ["download"] * 5
        assert order[5 : 5 + 20 - 4] == ["request"] * 16


def _order(item: int) -> JobOrder:
    return JobOrder(args={"item": f"{item}"})
