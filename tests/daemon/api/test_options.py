"""What a verb cannot be asked with is refused, and nothing is done."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from redrive.errors import UsageProblem
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act, Enqueue, JobOrder, PauseIt
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
