"""Pausing and resuming by name, and draining."""

from __future__ import annotations

from redrive.errors import NotFound, UsageProblem
from redrive.orders import check_text
from redrive.protocol.commands import Done, Drain, PauseIt, ResumeIt
from redrived.api.noting import note
from redrived.api.server import Asker
from redrived.engine.definitions import nearest
from redrived.engine.engine import Engine
from redrived.store.pauses import Pausing

KINDS = ("queue", "task", "schedule")


async def pause(engine: Engine, asker: Asker, request: PauseIt) -> Done:
    kind, name = which(engine, request.name)
    check_text("reason", request.why)
    wish = Pausing(kind=kind, name=name, by=asker.who, why=request.why)
    changed = await engine.pauses.change(wish)
    text = f"{kind} {name} is paused" if changed else f"{kind} {name} was paused already"
    return Done(text=text, data={"kind": kind, "name": name, "changed": changed})


async def resume(engine: Engine, asker: Asker, request: ResumeIt) -> Done:
    kind, name = which(engine, request.name)
    changed = await engine.pauses.change(Pausing(kind=kind, name=name, by=asker.who, resume=True))
    text = f"{kind} {name} goes on" if changed else f"{kind} {name} was not paused"
    return Done(text=text, data={"kind": kind, "name": name, "changed": changed})


async def drain(engine: Engine, asker: Asker, request: Drain) -> Done:
    if request.node is not None and request.node != engine.node:
        raise NotFound(
            f"this is node {engine.node}, not {request.node}", hint="ask the daemon of that node"
        )
    engine.drain(stop=request.stop)
    await note(engine, asker, "node_draining", stop=request.stop)
    return Done(text=f"node {engine.node} drains", data={"running": len(engine.under_way)})


def which(engine: Engine, text: str) -> tuple[str, str]:
    """`queue:X`, `task:X`, `schedule:X`, or a bare name that only one of them has."""
    config = engine.definitions.config
    known = {
        "queue": set(engine.definitions.queues),
        "task": set(engine.definitions.tasks),
        "schedule": set(config.schedules),
    }
    kind, colon, name = text.partition(":")
    if colon and kind in known:
        if name not in known[kind]:
            raise NotFound(f"there is no {kind} {name!r}", hint=nearest(name, known[kind]))
        return kind, name
    having = [kind for kind in KINDS if text in known[kind]]
    if not having:
        everything = {name for names in known.values() for name in names}
        raise NotFound(f"nothing is called {text!r}", hint=nearest(text, everything))
    if len(having) > 1:
        raise UsageProblem(
            f"{text!r} is a {' and a '.join(having)}", hint=f"say {having[0]}:{text}"
        )
    return having[0], text
