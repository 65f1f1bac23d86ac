"""What became of each of a set, as clients read it."""

from __future__ import annotations

from redrive.errors import RedriveError
from redrive.protocol.commands import Outcome, Refused
from redrived.store.actions import Acted


def outcome(acted: Acted) -> Outcome:
    problem = acted.refused
    if problem is None:
        return Outcome(id=str(acted.id), done=True, state=acted.state)
    return Outcome(id=str(acted.id), done=False, state=acted.state, refused=refused(problem))


def refused(problem: RedriveError) -> Refused:
    return Refused(
        code=problem.code,
        message=problem.message,
        hint=problem.hint,
        retry_after=getattr(problem, "retry_after", None),
        exit_code=problem.exit_code,
    )
