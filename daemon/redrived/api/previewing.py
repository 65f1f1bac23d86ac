"""What a verb would do, and to how many it would not, with the reasons."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from redrive.protocol.rehearsals import Preview, PreviewReply
from redrive.protocol.rows import RunPlan
from redrived.api.acting import (
    CHUNK,
    check_options,
    check_pace,
    check_step,
    check_verb,
    check_whom,
    chosen,
)
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.store import actions, events, jobs, run_rehearsal
from redrived.store.actions import Acted
from redrived.store.run_actions import RunAct
from redrived.store.run_pages import run_number
from redrived.store.run_rehearsal import Rehearsed

SAMPLE = 5  # jobs to look at, of those that it would be done to


class _Count:
    """Of jobs, each with the reason why it would be left alone, if it would."""

    def __init__(self) -> None:
        self.total = 0
        self.states: Counter[str] = Counter()
        self.excluded: Counter[str] = Counter()
        self.sample: list[int] = []

    def add(self, id: int, state: str | None, why_not: str | None) -> None:
        self.total += 1
        if state is not None:
            self.states[state] += 1
        if why_not is not None:
            self.excluded[why_not] += 1
        elif len(self.sample) < SAMPLE:
            self.sample.append(id)


async def preview(engine: Engine, asker: Asker, request: Preview) -> PreviewReply:
    check_verb(request.verb)
    check_options(request)
    check_whom([*request.ids, *request.runs], request.where)
    check_pace(request, request.runs)
    check_step(request.from_step, [str(id) for id in request.ids], request.where)
    ids = await chosen(engine, [str(id) for id in request.ids], request.where, None)
    count = _Count()
    for start in range(0, len(ids), CHUNK):
        for acted in await _rehearse(engine, asker, request, ids[start : start + CHUNK]):
            count.add(acted.id, acted.state, acted.refused.message if acted.refused else None)
    runs = await _rehearse_runs(engine, asker, request)
    for run in runs:
        for acted in await _rehearse(engine, asker, request, [*run.jobs, *run.spared]):
            count.add(acted.id, acted.state, _why_not(request.verb, run, acted))
    sample = await engine.store.read(jobs.get_many, count.sample)
    return PreviewReply(
        total=count.total,
        by_state=dict(count.states),
        fits=count.total - count.excluded.total(),
        excluded=dict(count.excluded),
        sample=[engine.definitions.budgeted(job) for job in sample],
        as_of=await engine.store.read(events.head),
        newest=max(ids, default=0),
        runs=[
            RunPlan(
                id=f"r{run.id}",
                steps=list(run.steps),
                refused=run.refused.message if run.refused else None,
            )
            for run in runs
        ],
    )


def _why_not(verb: str, run: Rehearsed, acted: Acted) -> str | None:
    """Why a job of a run would be left alone; a run takes up jobs that alone would not do."""
    if acted.id in run.jobs:
        return None
    if run.refused is not None:
        return run.refused.message
    if verb == "requeue" or acted.refused is None:
        return "its step is not run again"
    return acted.refused.message


async def _rehearse(
    engine: Engine, asker: Asker, request: Preview, ids: Sequence[int]
) -> list[Acted]:
    wish = actions.Act(
        verb=request.verb,
        jobs=ids,
        by=asker.who,
        force=request.force,
        manual=engine.definitions.config.manual_retry,
    )
    store = engine.store
    return await store.read(actions.rehearse, store.database, engine.clock.now(), wish)


async def _rehearse_runs(engine: Engine, asker: Asker, request: Preview) -> list[Rehearsed]:
    if not request.runs:
        return []
    wish = RunAct(
        verb=request.verb,
        runs=[run_number(id) for id in request.runs],
        by=asker.who,
        force=request.force,
        again=request.again,
        from_step=request.from_step,
        manual=engine.definitions.config.manual_retry,
    )
    store = engine.store
    return await store.read(run_rehearsal.rehearse, store.database, engine.clock.now(), wish)
