"""An option that a verb does not have is refused: nobody is to believe that it was heeded."""

from __future__ import annotations

from redrive.errors import UsageProblem
from redrive.protocol.commands import Act, Acted
from redrived.api import acting
from redrived.api.server import Asker
from redrived.engine.engine import Engine

# By the names of people. `again` is not among them: `--yes` says it for every verb.
_OF_REQUEUE = {
    "force": "force",
    "from_step": "a step to begin at",
    "canary": "a canary",
    "pace": "a pace",
    "stop_at": "a limit of failures",
}


async def act(engine: Engine, asker: Asker, request: Act) -> Acted:
    acting.check_verb(request.verb)
    if request.verb != "requeue":
        for option, words in _OF_REQUEUE.items():
            given = getattr(request, option)
            if given is not None and given is not False:
                raise UsageProblem(
                    f"{request.verb} has no use for {words}",
                    hint=f"leave {option} out; only requeue has it",
                )
    return await acting.act(engine, asker, request)
