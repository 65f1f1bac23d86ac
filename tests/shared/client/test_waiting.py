from __future__ import annotations

import asyncio
from typing import Any

import pytest

from redrive.client import AsyncClient, waiting
from redrive.errors import DaemonUnreachable, NotFound
from redrive.lifecycle import JobState
from redrive.models import Job, Run
from redrive.protocol.queries import JobPage, ListJobs, RunReply
from support.peer import Peer


def jobs(peer: Peer, *answers: dict[int, JobState]) -> None:
    """Each question sees the next of the answers; the last one stays."""
    left = list(answers)

    def page(_: ListJobs) -> JobPage:
        states = left.pop(0) if len(left) > 1 else left[0]
        found = [Job(id=id, task="t", queue="q", state=state) for id, state in states.items()]
        return JobPage(jobs=found, after=None, as_of=1)

    peer.replies["ListJobs"] = page


async def test_waiting_ends_when_every_job_has_ended(peer: Peer, client: AsyncClient) -> None:
    jobs(
        peer,
        {12: JobState.LEASED, 13: JobState.DONE},
        {12: JobState.RETRY},
        {12: JobState.DEAD},
    )
    assert await client.wait("12", "13") == {"12": "dead", "13": "done"}
    assert [asked.where for asked in peer.asked_for("ListJobs")] == ["id:12,13", "id:12", "id:12"]


async def test_the_id_of_an_enqueued_job_can_be_waited_for_as_it_is(
    peer: Peer, client: AsyncClient
) -> None:
    jobs(peer, {12: JobState.DONE})
    assert await client.wait(12) == {12: "done"}


async def test_what_has_not_ended_in_time_is_missing(peer: Peer, client: AsyncClient) -> None:
    jobs(peer, {12: JobState.LEASED, 13: JobState.DONE})
    assert await client.wait("12", "13", timeout=0.1) == {"13": "done"}


async def test_what_has_ended_is_found_however_little_time_is_given(
    peer: Peer, client: AsyncClient
) -> None:
    jobs(peer, {12: JobState.LEASED, 13: JobState.DONE})
    assert await client.wait(12, 13, timeout=0) == {13: "done"}
    jobs(peer, {})
    with pytest.raises(NotFound):
        await client.wait(12, timeout=0)


async def test_jobs_of_which_a_page_has_few_are_all_found(peer: Peer, client: AsyncClient) -> None:
    def one(asked: ListJobs) -> JobPage:
        id = int(asked.after or "14") - 1
        job = Job(id=id, task="t", queue="q", state=JobState.DONE)
        return JobPage(jobs=[job], after=str(id) if id > 11 else None, as_of=1)

    peer.replies["ListJobs"] = one
    assert await client.wait(11, 12, 13) == dict.fromkeys((11, 12, 13), "done")


async def test_a_job_that_is_not_there_is_an_error(peer: Peer, client: AsyncClient) -> None:
    jobs(peer, {})
    with pytest.raises(NotFound, match="no job 12"):
        await client.wait("12")


async def test_a_run_ends_too(peer: Peer, client: AsyncClient) -> None:
    states: list[Any] = ["running", "failed"]

    def show(_: object) -> RunReply:
        return RunReply(run=Run(id="r7", pipeline="p", state=states.pop(0)))

    peer.replies["ShowRun"] = show
    assert await client.wait("r7") == {"r7": "failed"}


async def test_a_daemon_that_is_restarted_makes_no_difference(
    peer: Peer, client: AsyncClient
) -> None:
    def leaves(_: ListJobs) -> JobPage:
        jobs(peer, {12: JobState.DONE})
        peer.close()
        asyncio.get_running_loop().call_later(0.1, peer.open)
        return JobPage(jobs=[], after=None, as_of=1)

    jobs(peer, {12: JobState.LEASED})
    asked = asyncio.create_task(client.wait(12))
    while not peer.asked_for("ListJobs"):
        await asyncio.sleep(0)
    peer.replies["ListJobs"] = leaves
    assert await asked == {12: "done"}


@pytest.mark.parametrize("timeout", [None, 60.0])
async def test_a_daemon_that_never_was_there_is_told_of_at_once(
    peer: Peer, client: AsyncClient, timeout: float | None
) -> None:
    peer.close()
    async with asyncio.timeout(30):
        with pytest.raises(DaemonUnreachable):
            await client.wait(12, timeout=timeout)


async def test_a_daemon_that_stays_away_is_an_error(
    peer: Peer, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(waiting, "RESTART", 0.0)
    jobs(peer, {12: JobState.LEASED})
    asked = asyncio.create_task(client.wait(12))
    while not peer.asked_for("ListJobs"):
        await asyncio.sleep(0)
    peer.close()
    with pytest.raises(DaemonUnreachable):
        await asked
