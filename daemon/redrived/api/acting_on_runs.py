"""Verbs on runs: what `acting` does to jobs, for ids such as r7."""

from __future__ import annotations

from collections.abc import Sequence

from redrive.protocol.commands import Act, Outcome
from redrived.api.outcomes import refused
from redrived.api.server import Asker
from redrived.engine.attempt import Ending
from redrived.engine.engine import Engine
from redrived.store.run_actions import RunAct, act_on_runs
from redrived.store.run_pages import run_number


async def act(engine: Engine, asker: Asker, request: Act, ids: Sequence[str]) -> list[Outcome]:
    """An outcome for each run; the attempts of its jobs that run now are ended."""
    wish = RunAct(
        verb=request.verb,
        runs=[run_number(id) for id in ids],
        by=asker.who,
        force=request.force,
        again=request.again,
        from_step=request.from_step,
        manual=engine.definitions.config.manual_retry,
        data={"reason": request.reason} if request.reason else {},
    )
    outcomes: list[Outcome] = []
    for acted in await engine.store.submit(act_on_runs, wish):
        for job in acted.running:
            engine.end(job.id, job.running or 0, Ending(request.verb), asker.who)
        problem = acted.refused
        outcomes.append(
            Outcome(
                id=f"r{acted.id}",
                done=problem is None,
                state=acted.state,
                refused=None if problem is None else refused(problem),
            )
        )
    return outcomes
