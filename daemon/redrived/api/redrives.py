"""Redrives: begun by a requeue of a set, listed, controlled, undone."""

from __future__ import annotations

from redrive.errors import UsageProblem
from redrive.protocol.commands import Act, Acted, ControlRedrive, Done, Undo
from redrive.protocol.queries import ListRedrives, RedrivePage
from redrived.api.jobs import condition
from redrived.api.outcomes import outcome
from redrived.api.server import Asker
from redrived.engine.definitions import parse_limit
from redrived.engine.engine import Engine
from redrived.engine.intake import check_ids
from redrived.store import redrives
from redrived.store.redrives import NewRedrive

_CONTROLLED = {"pause": "is paused", "resume": "goes on", "stop": "is stopped"}
AT_ONCE = 1_000  # a set of up to so many, of which none waits, is answered for one by one


async def begin(engine: Engine, asker: Asker, request: Act) -> Acted:
    """Requeue a set as a redrive: recorded, paced, undoable."""
    options = _options(request)
    clause = condition(engine, request.where) if request.where is not None else None
    wish = NewRedrive(
        by=asker.who,
        where=request.where,
        condition=clause,
        ids=check_ids(request.ids) if request.where is None else None,
        newest=request.newest,
        options=options,
    )
    chosen = await engine.redrives.begin(wish)
    if chosen.id is None:
        return Acted(outcomes=[])
    acted = Acted(outcomes=[], redrive=chosen.id, total=chosen.total)
    if chosen.total > AT_ONCE or {"canary", "pace", "stop_at"} & options.keys():
        engine.redrives.wake()
        return acted
    jobs = await engine.redrives.turns(chosen.id)
    return Acted(outcomes=[outcome(each) for each in jobs], redrive=chosen.id, total=chosen.total)


def _options(request: Act) -> dict[str, object]:
    _check_pace(request.pace)
    if request.stop_at is not None and not 0 < request.stop_at <= 1:
        raise UsageProblem(
            f"a limit of {request.stop_at} is no share of failures", hint="between 0 and 1"
        )
    if request.canary is not None and request.canary < 1:
        raise UsageProblem(f"a canary of {request.canary} jobs is none", hint="1 or more")
    options = {
        "canary": request.canary,
        "pace": request.pace,
        "stop_at": request.stop_at,
        "reason": request.reason,
        "force": request.force or None,
    }
    return {name: value for name, value in options.items() if value is not None}


async def list_redrives(engine: Engine, asker: Asker, request: ListRedrives) -> RedrivePage:
    return RedrivePage(redrives=await engine.store.read(redrives.rows, max(1, request.limit)))


async def undo(engine: Engine, asker: Asker, request: Undo) -> Done:
    undone = await engine.redrives.undo(request.redrive, asker.who)
    id = request.redrive
    match undone:
        case 0:
            text = f"redrive {id} requeues no more; what it requeued has begun or ended"
        case 1:
            text = f"1 job of redrive {id} is back where it was"
        case _:
            text = f"{undone} jobs of redrive {id} are back where they were"
    return Done(text=text, data={"redrive": id, "undone": undone})


async def control(engine: Engine, asker: Asker, request: ControlRedrive) -> Done:
    if request.verb not in _CONTROLLED:
        raise UsageProblem(
            f"a redrive cannot be told to {request.verb!r}", hint="pause, resume or stop"
        )
    _check_pace(request.pace)
    await engine.redrives.control(request.redrive, request.verb, asker.who, request.pace)
    text = f"redrive {request.redrive} {_CONTROLLED[request.verb]}"
    return Done(text=text, data={"redrive": request.redrive})


def _check_pace(pace: str | None) -> None:
    try:
        parse_limit(pace)
    except ValueError as error:
        raise UsageProblem(f"the pace cannot be read: {error}", hint="as in 50/min") from None
