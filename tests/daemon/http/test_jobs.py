from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from redrive.protocol.commands import Act
from redrived.api import acting
from support.engine import TESTER
from support.http_side import Side


async def test_a_job_is_enqueued_once_per_unique_key(side: Side) -> None:
    body = {"task": "work", "args": {"n": 1}, "unique": "k", "hold": True}
    made = await side.post("/v1/jobs", body)
    assert (made.status_code, made.json()["created"]) == (201, True)
    assert made.headers["location"] == f"/v1/jobs/{made.json()['id']}"
    again = await side.post("/v1/jobs", body)
    assert (again.status_code, again.json()) == (200, {**made.json(), "created": False})
    shown = (await side.get(made.headers["location"])).json()
    assert (shown["state"], shown["held"], shown["args"]) == ("queued", True, {"n": 1})
    assert shown["created_at"].endswith("Z")


async def test_jobs_are_listed_by_filter_a_page_at_a_time(side: Side) -> None:
    for queue in ("bulk", "default", "bulk", "bulk"):
        await side.post("/v1/jobs", {"task": "work", "queue": queue, "hold": True})
    page = (await side.get("/v1/jobs", params={"where": "queue:bulk", "limit": 2})).json()
    assert [job["id"] for job in page["jobs"]] == [4, 3]
    params = {"where": "queue:bulk", "limit": "2", "after": page["after"]}
    rest = (await side.get("/v1/jobs", params=params)).json()
    assert ([job["id"] for job in rest["jobs"]], rest["after"]) == ([1], None)


async def test_a_filter_that_is_misspelt_is_refused_and_does_not_list_everything(
    side: Side,
) -> None:
    await side.post("/v1/jobs", {"task": "work", "hold": True})
    refused = await side.get("/v1/jobs", params={"state": "dead"})
    assert (refused.status_code, refused.json()["code"]) == (400, "usage")
    assert refused.json()["title"] == "there is no parameter 'state'"
    assert "where" in refused.json()["detail"]


async def test_a_time_is_given_with_its_zone(side: Side) -> None:
    body = {"task": "work", "at": "2099-01-01T12:00:00+02:00"}
    made = await side.post("/v1/jobs", body)
    shown = (await side.get(made.headers["location"])).json()
    assert shown["scheduled_for"] == "2099-01-01T10:00:00.000000Z"
    refused = await side.post("/v1/jobs", {"task": "work", "at": "2099-01-01T12:00:00"})
    assert (refused.status_code, "timezone" in refused.json()["title"]) == (400, True)


@pytest.mark.parametrize(
    ("delay", "seconds"), [("1h", 3600), ("1h30m", 5400), ("90", 90), (90, 90), (1.5, 1.5)]
)
async def test_a_delay_is_given_in_seconds_or_as_people_write_it(
    side: Side, delay: Any, seconds: float
) -> None:
    before = datetime.now(UTC)
    made = await side.post("/v1/jobs", {"task": "work", "delay": delay})
    after = datetime.now(UTC)
    assert made.status_code == 201
    shown = (await side.get(made.headers["location"])).json()
    due = datetime.fromisoformat(shown["scheduled_for"])
    assert before <= due - timedelta(seconds=seconds) <= after


async def test_what_is_no_delay_is_told_what_one_looks_like(side: Side) -> None:
    refused = await side.post("/v1/jobs", {"task": "work", "delay": "soon"})
    assert refused.status_code == 400
    assert 'got "soon", expected a duration such as "30s"' in refused.json()["title"]


async def test_a_time_long_ago_is_shown_as_it_was_given(side: Side) -> None:
    made = await side.post("/v1/jobs", {"task": "work", "at": "0001-01-01T00:00:00Z"})
    shown = (await side.get(made.headers["location"])).json()
    assert shown["scheduled_for"] == "0001-01-01T00:00:00.000000Z"


async def test_a_method_that_a_path_has_not_is_told_those_it_has(side: Side) -> None:
    refused = await side.client.request("PUT", "/v1/jobs")
    assert refused.status_code == 405
    assert set(refused.headers["allow"].split(", ")) == {"GET", "HEAD", "POST"}
    assert refused.headers["content-type"] == "application/problem+json"
    assert refused.json()["title"] == "/v1/jobs takes no PUT"
    assert "POST" in refused.json()["detail"]
    assert (await side.client.head("/v1/jobs")).status_code == 200


async def test_a_waiting_job_is_cancelled_and_requeued(side: Side) -> None:
    await side.post("/v1/jobs", {"task": "work", "hold": True})
    cancelled = await side.post("/v1/jobs/1/cancel", {"reason": "not needed"})
    assert (cancelled.status_code, cancelled.json()["state"]) == (200, "cancelled")
    assert (await side.post("/v1/jobs/1/requeue")).status_code == 200


async def test_a_retry_within_the_cooldown_is_429_and_says_when(side: Side) -> None:
    [id] = await side.bench.enqueue("fail")
    await side.bench.ended(id)
    assert (await side.post(f"/v1/jobs/{id}/requeue")).status_code == 200
    await side.bench.event("step_retry_exhausted", id, n=2)
    refused = await side.post(f"/v1/jobs/{id}/requeue")
    assert refused.status_code == 429
    assert 0 < int(refused.headers["retry-after"]) <= 60
    assert refused.headers["content-type"] == "application/problem+json"
    assert (refused.json()["code"], refused.json()["status"]) == ("try_later", 429)


async def test_a_permanent_failure_is_not_requeued_without_force(side: Side) -> None:
    [id] = await side.bench.enqueue("broken")
    await side.bench.ended(id)
    refused = await side.post(f"/v1/jobs/{id}/requeue")
    assert refused.status_code == 403
    assert refused.json()["detail"] == 'mend the cause, then requeue with `{"force": true}`'
    assert (await side.post(f"/v1/jobs/{id}/requeue", {"force": True})).status_code == 200


@pytest.mark.parametrize("verb", ["cancel", "kill"])
async def test_force_is_only_for_a_requeue(side: Side, verb: str) -> None:
    await side.post("/v1/jobs", {"task": "work", "hold": True})
    refused = await side.post(f"/v1/jobs/1/{verb}", {"force": True})
    assert (refused.status_code, refused.json()["code"]) == (400, "usage")
    assert "unknown field `force`" in refused.json()["title"]
    assert (await side.get("/v1/jobs/1")).json()["state"] == "queued"


@pytest.mark.parametrize(
    ("path", "body"), [("/v1/jobs?hold=true", {"task": "work"}), ("/v1/jobs/1/kill?force=1", None)]
)
async def test_what_a_change_takes_is_not_looked_for_in_the_query(
    side: Side, path: str, body: Any
) -> None:
    await side.post("/v1/jobs", {"task": "work", "hold": True})
    refused = await side.post(path, body)
    assert refused.status_code == 400
    assert refused.json()["detail"] == "what this takes is sent in the body"
    assert len((await side.get("/v1/jobs")).json()["jobs"]) == 1


async def test_a_path_that_is_not_there_is_named_and_where_they_are_told(side: Side) -> None:
    refused = (await side.get("/v1/job/1")).json()
    assert refused["title"] == "there is no path /v1/job/1"
    assert refused["detail"] == "`GET /openapi.json` tells of those there are"


async def test_what_can_be_done_is_told_as_it_is_done_over_http(side: Side) -> None:
    [work], [failed], [broken] = [
        await side.bench.enqueue(task) for task in ("work", "fail", "broken")
    ]
    for id in (work, failed, broken):
        await side.bench.ended(id)

    async def next_of(id: int) -> str:
        return str((await side.get(f"/v1/jobs/{id}")).json()["next"])

    assert (await next_of(failed)).startswith(f"`POST /v1/jobs/{failed}/requeue` gives it another")
    forced = f'`POST /v1/jobs/{broken}/requeue` with `{{"force": true}}`'
    assert await next_of(broken) == f"mend the cause, then {forced}"
    refused = await side.post(f"/v1/jobs/{work}/cancel")
    assert refused.json()["detail"] == f"`GET /v1/jobs/{work}` says what can be done"


async def test_what_cannot_be_done_to_a_job_is_a_conflict(side: Side) -> None:
    [id] = await side.bench.enqueue("work")
    await side.bench.ended(id)
    refused = await side.post(f"/v1/jobs/{id}/cancel")
    assert (refused.status_code, refused.json()["code"]) == (409, "wrong_state")


@pytest.mark.parametrize(
    ("path", "body", "status"),
    [
        ("/v1/jobs", {"task": "nobody"}, 404),
        ("/v1/jobs", {"task": "work", "colour": "red"}, 400),
        ("/v1/jobs", {"task": "work", "args": [1]}, 400),
        ("/v1/jobs", {}, 400),
        ("/v1/jobs", {"task": "work", "args": {"x": "y" * 1_200_000}}, 413),
        ("/v1/jobs/999/cancel", None, 404),
        (f"/v1/jobs/{1 << 62}/cancel", None, 404),
        (f"/v1/jobs/{1 << 70}/cancel", None, 404),
        ("/v1/jobs/1/discard", None, 404),
        ("/v1/jobs/../../etc/passwd", None, 404),
    ],
)
async def test_what_makes_no_sense_is_refused(
    side: Side, path: str, body: Any, status: int
) -> None:
    refused = await side.post(path, body)
    assert refused.status_code == status
    assert refused.headers["content-type"] == "application/problem+json"


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "many", "9" * 400])
async def test_a_page_has_bounds(side: Side, limit: str) -> None:
    assert (await side.get("/v1/jobs", params={"limit": limit})).status_code == 400


async def test_a_parameter_that_is_given_twice_is_refused(side: Side) -> None:
    refused = await side.get("/v1/jobs", params={"where": ["state:done", "state:dead"]})
    assert refused.status_code == 400
    assert refused.json()["title"] == "where was given 2 times"


@pytest.mark.parametrize(
    ("path", "hint"),
    [
        ("/v1/jobs/999", "`GET /v1/jobs` lists them"),
        ("/v1/worker/runs/r999/status", "`GET /v1/worker/metrics` tells of those that failed last"),
    ],
)
async def test_what_is_not_there_is_looked_up_over_http(side: Side, path: str, hint: str) -> None:
    assert (await side.get(path)).json()["detail"] == hint


async def test_a_run_tells_its_status_its_retries_and_its_error(side: Side) -> None:
    id = await side.run("bad")
    told = (await side.get(f"/v1/worker/runs/{id}/status")).json()
    assert (told["status"], told["retry_count"], told["task_id"]) == ("FAILED", 1, 1)
    assert told["error_message"] == "max retries exhausted: connection refused"
    assert told["timestamps"]["completed_at"] is not None
    assert (await side.get(f"/v1/worker/runs/{id[1:]}/status")).json() == told
    good = await side.run("good")
    told = (await side.get(f"/v1/worker/runs/{good}/status")).json()
    assert (told["status"], told["error_message"]) == ("COMPLETE", None)


async def test_a_run_that_failed_without_a_job_tells_why(side: Side) -> None:
    id = await side.run("unfit")
    told = (await side.get(f"/v1/worker/runs/{id}/status")).json()
    assert (told["status"], told["task_id"]) == ("failed", None)
    assert "missing" in told["error_message"]
    [failure] = (await side.get("/v1/worker/metrics")).json()["recent_failures"]
    assert (failure["step"], failure["error_message"]) == ("load", told["error_message"])


async def test_a_run_whose_dead_job_was_discarded_tells_why(side: Side) -> None:
    id = await side.run("bad")
    job = (await side.get(f"/v1/worker/runs/{id}/status")).json()["task_id"]
    await acting.act(side.engine, TESTER, Act(verb="discard", ids=[str(job)]))
    told = (await side.get(f"/v1/worker/runs/{id}/status")).json()
    assert told["error_message"] == "max retries exhausted"


async def test_all_runs_together_are_counted(side: Side) -> None:
    for pipeline in ("good", "bad", "good"):
        await side.run(pipeline)
    told = (await side.get("/v1/worker/metrics")).json()
    assert told["status_counts"] == {"COMPLETE": 2, "FAILED": 1}
    assert told["retry_stats"] == {"total_retries": 1, "runs_retried": 1, "most_retries": 1}
    assert told["avg_duration"] > 0
    [failure] = told["recent_failures"]
    assert (failure["step"], failure["error_type"]) == ("parse", "connection_error")


@pytest.mark.parametrize(("id", "status"), [("r99", 404), ("99", 404), ("x", 400), ("r", 400)])
async def test_a_run_that_is_not_there_is_not_found(side: Side, id: str, status: int) -> None:
    answer = await side.get(f"/v1/worker/runs/{id}/status")
    assert answer.status_code == status
    if status == 400:
        assert f"'{id}'" in answer.json()["title"]  # what was asked for, and not what we made of it
