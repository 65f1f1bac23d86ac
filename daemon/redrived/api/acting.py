"""Verbs on jobs: on ids, or on all that match a filter as it was."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from redrive.errors import UsageProblem
from redrive.orders import check_text
from redrive.protocol.codec import that_fit
from redrive.protocol.commands import Act, Acted, Outcome
from redrive.protocol.envelope import ROOM
from redrive.protocol.rehearsals import Preview
from redrived.api import acting_on_runs, redrives
from redrived.api.jobs import condition
from redrived.api.outcomes import outcome
from redrived.api.server import Asker
from redrived.engine.attempt import Ending
from redrived.engine.definitions import nearest
from redrived.engine.engine import Engine
from redrived.engine.intake import check_ids
from redrived.store import actions, job_pages
from redrived.store.actions import VERBS

CHUNK = 1_000  # jobs changed in one go, so that the work between goes on

# By the names of people. `again` is not among them: `--yes` says it for every verb.
_OF_REQUEUE = {
    "force": "force",
    "from_step": "a step to begin at",
    "canary": "a canary",
    "pace": "a pace",
    "stop_at": "a limit of failures",
}


async def act(engine: Engine, asker: Asker, request: Act) -> Acted:
    check_verb(request.verb)
    check_options(request)
    check_whom(request.ids, request.where)
    check_step(request.from_step, request.ids, request.where)
    runs = [id for id in request.ids if id.startswith("r")]
    check_pace(request, runs)
    check_text("reason", request.reason)
    if request.verb == "requeue" and is_set(request):
        return await redrives.begin(engine, asker, request)
    jobs_only = [id for id in request.ids if not id.startswith("r")]
    ids = await chosen(engine, jobs_only, request.where, request.newest)
    data = {"reason": request.reason} if request.reason else {}
    outcomes: list[Outcome] = []
    if runs:
        outcomes += await acting_on_runs.act(engine, asker, request, runs)
    for start in range(0, len(ids), CHUNK):
        wish = actions.Act(
            verb=request.verb,
            jobs=ids[start : start + CHUNK],
            by=asker.who,
            force=request.force,
            manual=engine.definitions.config.manual_retry,
            expected=request.expected,
            data=data,
        )
        all_acted = await engine.store.submit(actions.act, wish)
        for acted in all_acted:
            if acted.running is not None:
                engine.end(acted.id, acted.running, Ending(request.verb), asker.who)
            outcomes.append(outcome(acted))
        if request.verb == "discard":
            gone = [acted.id for acted in all_acted if acted.refused is None]
            # Another node has what it ran, until it is older than `keep.outputs`.
            await asyncio.to_thread(engine.outputs.remove, gone)
    told = list(that_fit(outcomes, ROOM))
    others = outcomes[len(told) :]
    done = sum(each.done for each in others)
    return Acted(
        outcomes=told, total=len(outcomes), more_done=done, more_refused=len(others) - done
    )


def is_set(request: Act) -> bool:
    """Whether a requeue is to be recorded as a redrive."""
    return request.where is not None or _is_paced(request)


def _is_paced(request: Act | Preview) -> bool:
    return any(each is not None for each in (request.canary, request.pace, request.stop_at))


def check_options(request: Act | Preview) -> None:
    """Refuse what the verb does not have: nobody is to believe that it was heeded."""
    if request.verb == "requeue":
        return
    for option, words in _OF_REQUEUE.items():
        given = getattr(request, option)
        if given is not None and given is not False:
            raise UsageProblem(
                f"{request.verb} has no use for {words}",
                hint=f"leave {option} out; only requeue has it",
            )


def check_whom(ids: Sequence[str | int], where: str | None) -> None:
    if ids and where is not None:
        raise UsageProblem("both ids and a filter were given", hint="give one of them")


def check_pace(request: Act | Preview, runs: Sequence[str]) -> None:
    if _is_paced(request) and runs:
        raise UsageProblem(
            "runs are requeued at once; a canary, a pace and a limit of failures are for jobs",
            hint="leave them out, or name jobs",
        )


def check_step(step: str | None, ids: Sequence[str], where: str | None) -> None:
    if step is not None and (where is not None or not all(id.startswith("r") for id in ids)):
        raise UsageProblem(
            f"only runs have steps, so jobs cannot begin at {step[:40]!r}",
            hint="name runs, such as r7, or leave the step out",
        )


def check_verb(verb: str) -> None:
    if verb not in VERBS:
        raise UsageProblem(f"there is no verb {verb!r}", hint=nearest(verb, VERBS))


async def chosen(
    engine: Engine, ids: list[str], where: str | None, newest: int | None
) -> list[int]:
    """The jobs a request is about: by id, or those that match and were there at the time."""
    if where is None:
        return check_ids(ids)
    clause = condition(engine, where)
    return await engine.store.read(job_pages.matching, clause, newest)
