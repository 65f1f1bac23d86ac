"""What a verb cannot be asked with is refused, and nothing is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redrive.errors import UsageProblem
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act, Enqueue, JobOrder, PauseIt
from redrive.protocol.rehearsals import Preview
from redrived.api import pausing
from redrived.api.table import table
from support.engine import TESTER, Bench, running

TASKS = '[tasks.work]\ncommand = ["true"]'


async def do(bench: Bench, **wish: Any) -> Any:
    return await table(bench.engine)[Act](TESTER, Act(**wish))


@pytest.mark.parametrize(
    ("option", "words"),
    [
        ({"canary": 1}, "a canary"),
        ({"pace": "50/min"}, "a pace"),
        ({"stop_at": 0.2}, "a limit of failures"),
        ({"force": True}, "force"),
        ({"from_step": "parse"}, "a step to begin at"),
    ],
)
async def test_an_option_of_requeue_is_refused_for_others(
    tmp_path: Path, option: dict[str, Any], words: str
) -> None:
    async with running(tmp_path, TASKS) as bench:
        held = Enqueue(task="work", orders=[JobOrder(hold=True)])
        [id] = await bench.order(held)
        with pytest.raises(UsageProblem, match=f"^cancel has no use for {words}; leave"):
            await do(bench, verb="cancel", ids=[str(id)], **option)
        assert (await bench.job(id)).state is JobState.QUEUED

        await do(bench, verb="cancel", ids=[str(id)], again=True)
        assert (await bench.job(id)).state is JobState.CANCELLED
        if "from_step" not in option:  # which only runs have
            await do(bench, verb="requeue", ids=[str(id)], **option)


@pytest.mark.parametrize("reason", ["x" * 2_001, "a\0b"])
async def test_a_reason_that_no_event_can_bear_is_refused(tmp_path: Path, reason: str) -> None:
    async with running(tmp_path, TASKS) as bench:
        [id] = await bench.order(Enqueue(task="work", orders=[JobOrder(hold=True)]))
        for refused in (
            do(bench, verb="cancel", ids=[str(id)], reason=reason),
            pausing.pause(bench.engine, TESTER, PauseIt(name="work", why=reason)),
        ):
            with pytest.raises(UsageProblem, match="cannot be used; 2,000 characters at most"):
                await refused
        assert (await bench.job(id)).state is JobState.QUEUED
        await do(bench, verb="cancel", ids=[str(id)], reason="two\nlines" * 200)


@pytest.mark.parametrize("id", ["12", "r7"])
@pytest.mark.parametrize("verb", ["requeue", "cancel"])
async def test_ids_beside_a_filter_are_refused_not_forgotten(
    tmp_path: Path, verb: str, id: str
) -> None:
    async with running(tmp_path, TASKS) as bench:
        [waiting] = await bench.order(Enqueue(task="work", orders=[JobOrder(hold=True)]))
        with pytest.raises(UsageProblem, match="both ids and a filter"):
            await do(bench, verb=verb, ids=[id], where="task:work")
        assert (await bench.job(waiting)).state is JobState.QUEUED


@pytest.mark.parametrize(
    "wish",
    [
        {"verb": "requeue", "runs": ["r1"], "canary": 1},
        {"verb": "requeue", "runs": ["r1"], "where": "task:work"},
        {"verb": "hold", "ids": [1], "pace": "50/min"},
        {"verb": "kill", "ids": [1], "force": True},
    ],
)
async def test_a_rehearsal_refuses_what_would_be_refused(
    tmp_path: Path, wish: dict[str, Any]
) -> None:
    async with running(tmp_path, TASKS) as bench:
        ids = [*map(str, wish.pop("ids", [])), *wish.get("runs", [])]
        request = Preview(**wish, ids=[int(id) for id in ids if id.isdecimal()])
        with pytest.raises(UsageProblem) as refused:
            await table(bench.engine)[Preview](TESTER, request)
        wish.pop("runs", None)
        with pytest.raises(UsageProblem) as told:
            await do(bench, **wish, ids=ids)
        assert str(refused.value) == str(told.value)
