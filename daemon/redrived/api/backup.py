"""A copy of the store, taken while it works."""

from __future__ import annotations

import asyncio
from pathlib import Path

from msgspec.structs import asdict

from redrive.errors import RedriveError, UsageProblem
from redrive.protocol.commands import Backup, Done
from redrived.api.noting import note
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.store.backup import back_up


async def backup(engine: Engine, asker: Asker, request: Backup) -> Done:
    database = engine.store.database
    if not database.is_sqlite:
        raise RedriveError(
            "the store is PostgreSQL, which redrive does not copy",
            hint="use `pg_dump --format=custom`, and `pg_restore` with every daemon stopped",
        )
    target = Path(request.path)
    if not target.is_absolute():
        raise UsageProblem(
            f"{request.path} is a relative path", hint="the daemon has a folder of its own"
        )
    copy = await asyncio.to_thread(back_up, database.path, target)
    await note(engine, asker, "store_backed_up", path=copy.path, jobs=copy.jobs)
    return Done(
        text=f"{copy.path} holds {copy.jobs} jobs, up to event {copy.seq}", data=asdict(copy)
    )
