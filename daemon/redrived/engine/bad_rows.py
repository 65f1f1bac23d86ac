"""A row that makes no sense: its job is a person's to look at, and holds up no other."""

from __future__ import annotations

import logging

from redrive.deciding.verdict import Verdict
from redrive.errors import RedriveError
from redrive.lifecycle import JobState, Reason
from redrive.models import Decision
from redrive.rules import Evidence
from redrived.engine.evidence import permanent_evidence
from redrived.store.picking import InHand

UNREADABLE = "unreadable_row"  # the error type, and the rule that decides

log = logging.getLogger(__name__)


def unreadable_evidence(job: InHand, problem: Exception) -> Evidence:
    """What is wrong with the row, told in the log as well."""
    is_known = isinstance(problem, RedriveError)
    why = str(problem) if is_known else f"its row makes no sense: {problem!r}"
    log.error("job %d is put aside: %s", job.id, why, exc_info=None if is_known else problem)
    return permanent_evidence(job, UNREADABLE, why)


def put_aside(job: InHand) -> Verdict:
    """Dead, as no other attempt could do better; no policy is asked."""
    decision = Decision(
        retry=False,
        rule=UNREADABLE,
        because=f"attempt {job.attempt} of {job.max_attempts}: not retried, its row cannot be read",
    )
    return Verdict(state=JobState.DEAD, reason=Reason.PERMANENT, decision=decision)
