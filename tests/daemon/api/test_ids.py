"""S07: an id from the wire is a number or it is refused, before anything is looked up by it."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.errors import RedriveError, UsageProblem
from redrive.protocol.commands import Act, PauseIt, Start, Trigger
from redrive.protocol.envelope import Request
from redrive.protocol.queries import ListEvents, ListJobs, ListRuns, ShowPipeline, ShowRun, Why
from redrive.protocol.rehearsals import Preview, ShowPolicy
from redrived.api.server import Asker
from redrived.api.table import table
from support.engines import an_engine

ASKER = Asker(who="me", role="operator")
BAD = [
    "../../etc/passwd",
    "/dev/fifo",
    "1\x00",
    "9" * 10_000,
    "",
    "-1",
    "٣",
    "1e3",
    " 1",
    "r",
    "r-1",
]


def by_id(id: str) -> list[Request]:
    return [
        Why(id=id),
        ListEvents(id=id),
        ShowRun(id=id),
        ListRuns(after=id),
        ListJobs(after=id),
        Act(verb="cancel", ids=[id]),
        Act(verb="requeue", ids=[id], pace="1/s"),
        Act(verb="cancel", ids=[f"r{id}"]),
        Preview(verb="cancel", runs=[id]),
    ]


def by_name(name: str) -> list[Request]:
    return [
        ShowPipeline(name=name),
        ShowPolicy(name=name),
        Start(pipeline=name, orders=[]),
        Trigger(schedule=name),
        PauseIt(name=name),
        PauseIt(name=f"queue:{name}"),
    ]


@pytest.mark.parametrize("id", BAD, ids=range(len(BAD)))
async def test_s07_what_is_no_id_is_refused_and_what_is_no_name_is_not_found(
    tmp_path: Path, id: str
) -> None:
    async with an_engine(tmp_path) as engine:
        functions = table(engine)
        for request in by_id(id):
            with pytest.raises(UsageProblem):
                await functions[type(request)](ASKER, request)
        for request in by_name(id):
            with pytest.raises(RedriveError):
                await functions[type(request)](ASKER, request)
