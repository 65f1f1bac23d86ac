"""Going on with another config, as an operator asks for it."""

from __future__ import annotations

from redrive.protocol.commands import Reload, ReloadReply
from redrived.api.server import Asker
from redrived.engine.engine import Engine


async def reload(engine: Engine, asker: Asker, request: Reload) -> ReloadReply:
    return await engine.reloader.reload(dry_run=request.dry_run, by=asker.who)
