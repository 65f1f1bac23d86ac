"""Numbers that make no sense are refused, or taken for the nearest that does."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
import pytest

from redrive.errors import UsageProblem
from redrive.keys import Role
from redrive.protocol.codec import encode
from redrive.protocol.commands import Enqueue, JobOrder, Undo
from redrive.protocol.envelope import Call, Request
from redrive.protocol.queries import (
    ListEvents,
    ListGroups,
    ListJobs,
    ListRedrives,
    ReadLog,
    ShowJob,
    ShowPipeline,
)
from redrive.protocol.rehearsals import TestRules
from redrived.api.reading import read_request
from redrived.api.server import Asker
from redrived.api.table import table
from redrived.store.database import Database
from support.databases import database
from support.engines import an_engine
from support.open_store import url_of

ASKER = Asker(who="me", role="operator")
TOO_LARGE = 2**63


@pytest.mark.parametrize(
    "request_",
    [
        ShowJob(id=TOO_LARGE),
        ReadLog(id=1, offset=TOO_LARGE),
        ListEvents(after=TOO_LARGE),
        ListRedrives(limit=TOO_LARGE),
        ShowPipeline(name="a", version=TOO_LARGE),
        Undo(redrive=TOO_LARGE),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_number_that_no_database_holds_is_refused(request_: Request) -> None:
    role: Role = "operator" if isinstance(request_, Undo) else "viewer"
    with pytest.raises(UsageProblem, match="cannot be 9223372036854775808"):
        read_request(role, Call(id="a", body=msgspec.Raw(encode(request_))))


@pytest.mark.parametrize("since", [-1.0, 1e18, math.inf, math.nan])
async def test_errors_of_a_time_that_never_was_are_refused(tmp_path: Path, since: float) -> None:
    async with an_engine(tmp_path) as engine:
        with pytest.raises(UsageProblem, match="there are no errors of the last"):
            await table(engine)[TestRules](ASKER, TestRules(since=since))


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_less_than_nothing_is_not_everything(tmp_path: Path, kind: str) -> None:
    with database(kind, tmp_path) as made:
        await _ask_for_less_than_nothing(tmp_path, made)


async def _ask_for_less_than_nothing(folder: Path, made: Database) -> None:
    async with an_engine(folder, "[tasks.say]\ncommand = ['true']", url=url_of(made)) as engine:
        functions = table(engine)
        await functions[Enqueue](ASKER, Enqueue(task="say", orders=[JobOrder()], count=3))
        for asked, field, n in [
            (ListEvents(last=-1), "events", 0),
            (ListEvents(limit=-1), "events", 1),
            (ListJobs(offset=-1), "jobs", 3),
            (ListRedrives(limit=-1), "redrives", 0),
            (ListGroups(limit=-1), "groups", 0),
        ]:
            page = await functions[type(asked)](ASKER, asked)
            assert len(getattr(page, field)) == n
