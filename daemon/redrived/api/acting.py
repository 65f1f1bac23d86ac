"""Verbs on jobs: on ids, or on all that match a filter as it was."""

from __future__ import annotations

from collections import Counter

from redrive.errors import RedriveError, UsageProblem
from redrive.lifecycle import JobState, allowed
from redrive.manual import refusal
from redrive.models import Job
from redrive.protocol.commands import Act, Acted, Outcome
from redrive.protocol.queries import Preview, PreviewReply
from redrived.api import acting_on_runs, redrives
from redrived.api.jobs import condition
from redrived.api.outcomes import outcome
from redrived.api.server import Asker
from redrived.engine.attempt import Ending
from redrived.engine.definitions import nearest
from redrived.engine.engine import Engine
from redrived.engine.intake import check_ids
from redrived.store import actions, events, jobs
from redrived.store.actions import VERBS

CHUNK = 1_000  # jobs changed in one go, so that the work between goes on
SAMPLE = 5


async def act(engine: Engine, asker: Asker, request: Act) -> Acted:
    check_verb(request.verb)
    if request.verb == "requeue" and is_set(request):
        return await redrives.begin(engine, asker, request)
    runs = [id for id in request.ids if id.startswith("r")]
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
        for acted in await engine.store.submit(actions.act, wish):
            if acted.running is not None:
                engine.end(acted.id, acted.running, Ending(request.verb), asker.who)
            outcomes.append(outcome(acted))
    return Acted(outcomes=outcomes, total=len(outcomes))


def is_set(request: Act) -> bool:
    """Whether a requeue is to be recorded as a redrive."""
    if request.from_step is not None or any(id.startswith("r") for id in request.ids):
        return False
    paced = (request.canary, request.pace, request.stop_at)
    return request.where is not None or any(each is not None for each in paced)


def check_verb(verb: str) -> None:
    if verb not in VERBS:
        raise UsageProblem(f"there is no verb {verb!r}", hint=nearest(verb, VERBS))


async def chosen(
    engine: Engine, ids: list[str], where: str | None, newest: int | None
) -> list[int]:
    """The jobs a request is about: by id, or those that match and were there at the time."""
    if where is None:
        return check_ids(ids)
    if ids:
        raise UsageProblem("both ids and a filter were given", hint="give one of them")
    clause, _ = condition(engine, where)
    return await engine.store.read(jobs.matching, clause, newest)


async def preview(engine: Engine, asker: Asker, request: Preview) -> PreviewReply:
    """What a verb would do, and to how many it would not, with the reasons."""
    check_verb(request.verb)
    ids = await chosen(engine, [str(id) for id in request.ids], request.where, None)
    states: Counter[str] = Counter()
    excluded: Counter[str] = Counter()
    sample: list[Job] = []
    for start in range(0, len(ids), CHUNK):
        for job in await engine.store.read(jobs.get_many, ids[start : start + CHUNK]):
            states[job.state] += 1
            why_not = await _why_not(engine, request, job)
            if why_not is not None:
                excluded[why_not] += 1
            elif len(sample) < SAMPLE:
                sample.append(job)
    return PreviewReply(
        total=len(ids),
        by_state=dict(states),
        fits=len(ids) - excluded.total(),
        excluded=dict(excluded),
        sample=sample,
        as_of=await engine.store.read(events.head),
        newest=max(ids, default=0),
    )


async def _why_not(engine: Engine, request: Preview, job: Job) -> str | None:
    verb = VERBS[request.verb]
    if job.state is JobState.LEASED and verb.ends_running:
        return None
    if not allowed(verb.move, job.state):
        return f"it is {job.state}, not {verb.fits}"
    if request.verb == "requeue":
        refused: RedriveError | None = refusal(
            reason=job.reason,
            manual_retries=job.budgets.manual_retries if job.budgets else 0,
            last_manual_at=None,
            now=engine.clock.now(),
            rules=engine.definitions.config.manual_retry,
            force=request.force,
        )
        return refused.message if refused else None
    return None
