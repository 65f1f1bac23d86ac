"""Who did what, where no change of a row says so."""

from __future__ import annotations

import logging

from redrive.errors import RedriveError
from redrived.bus import Asker
from redrived.engine.engine import Engine
from redrived.store.say import Said, say

log = logging.getLogger(__name__)


async def note(engine: Engine, asker: Asker, kind: str, **data: object) -> None:
    """Put it into the events; a store in trouble undoes nothing of what was done."""
    try:
        await engine.store.submit(say, Said(kind, {"by": asker.who, **data}))
    except RedriveError as problem:
        log.warning("%s (by %s) could not be stored: %s", kind, asker.who, problem)
