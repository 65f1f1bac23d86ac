"""How attempts end: what is known is put together, a verdict asked for, the answer stored.

Every way an attempt can end passes here, and nothing else writes ends. What is submitted must
land: while the disk is full it waits for room, with the number of its lease.
"""

from __future__ import annotations

import logging
import random
from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from redrive.clock import SECOND, Clock
from redrive.deciding import facts
from redrive.deciding.facts import Facts
from redrive.deciding.verdict import Verdict, decide
from redrive.errors import RedriveError
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord
from redrive.policy import RetryPolicy
from redrive.rules import Evidence
from redrived.engine.attempt import Attempt, Ending
from redrived.engine.bad_rows import put_aside, unreadable_evidence
from redrived.engine.breaker import Breakers
from redrived.engine.definitions import Definitions
from redrived.engine.end import (
    End,
    completed_row,
    ended_row,
    error_record,
    events_of,
    log_name,
)
from redrived.engine.evidence import (
    death_evidence,
    exit_evidence,
    lost_evidence,
    overdue_evidence,
    permanent_evidence,
    report_evidence,
    reported_end,
)
from redrived.engine.job_facts import facts_of
from redrived.processes import wire
from redrived.processes.command import Exit
from redrived.seldom import Seldom
from redrived.store.give_back import GivenBack, give_back
from redrived.store.picking import InHand
from redrived.store.settle import Completed, complete, end
from redrived.store.store import Store

log = logging.getLogger(__name__)

PUT_OFF = 5.0  # seconds


class Settler:
    """Used by the main loop only."""

    def __init__(
        self, store: Store, definitions: Definitions, breakers: Breakers, clock: Clock
    ) -> None:
        self.definitions = definitions
        self.when_freed: list[Callable[[], None]] = []  # called whenever room may have become free
        # The task, what its jobs became, how many.
        self.when_ended: list[Callable[[str, str, int], None]] = []
        self._store = store
        self._breakers = breakers
        self._clock = clock
        self._seldom = Seldom(log)

    # ---- ends --------------------------------------------------------------------------------

    def completed(self, done: Sequence[Completed]) -> None:
        if done:
            self._store.post(complete, done)
            for task, n in Counter([job.task for job in done]).items():
                self._breakers.note(task, failed_transiently=False, n=n)
                for tell in self.when_ended:
                    tell(task, JobState.DONE, n)

    def gave_back(self, jobs: Sequence[InHand]) -> None:
        """Jobs that never began return free of charge."""
        if jobs:
            rows = [
                GivenBack(job.id, job.lease, job.queue, job.task, job.leased_from, job.limit_key)
                for job in jobs
            ]
            self._store.post(give_back, rows)
        self.freed()

    def reported(
        self,
        job: InHand,
        report: wire.Report,
        attempt: Attempt | None,
        ended_at: int,
        *,
        too_long: bool,
    ) -> None:
        """A worker tells of an attempt that did not succeed, or whose output is too long."""
        ended, known = reported_end(job, report)
        if isinstance(ended, facts.Snoozed):
            ended = facts.Snoozed(self._store.when_ours_shows(ended.until))
        self._settle(
            attempt,
            End(
                job=job,
                began_at=None if attempt else report.began,
                ended_at=ended_at,
                ended=ended or self._failed(job, report_evidence(job, report)),
                metrics=report.metrics,
                log=report.wrote,
                is_too_long=too_long,
                known=known,
            ),
        )

    def exited(self, attempt: Attempt, exited: Exit) -> Completed | None:
        """A command has ended; a success is the caller's to tell, with others."""
        job = attempt.job
        metrics = msgspec.json.decode(attempt.metrics) if attempt.metrics else None
        too_long = exited.output > attempt.definition.task.limits.output
        left = exited.ended.told()
        if exited.ended.killed and attempt.ending is None:  # it ended by itself, and before them
            left = {"left_behind": list(exited.ended.killed), **left}
        if exited.code == 0 and attempt.ending is None and not too_long:
            told: dict[str, Any] = {"log": log_name(job)} if exited.output else {}
            told |= left
            if exited.result_note:
                told["result_note"] = exited.result_note
            if metrics:
                told["metrics"] = metrics
            return completed_row(attempt, self._clock.now(), exited.result, told)
        evidence = exit_evidence(job, exited, attempt.definition.task.limits)
        self._settle(
            attempt,
            End(
                job=job,
                began_at=attempt.unlogged_begin,
                ended_at=self._clock.now(),
                ended=self._failed(job, evidence),
                metrics=metrics,
                log=exited.output > 0,
                is_too_long=too_long,
                known={
                    "exit_code": exited.code,
                    "signal": evidence.signal,
                    "result": exited.result,
                },
                left=left,
            ),
        )
        return None

    def answered(
        self,
        attempt: Attempt,
        result: dict[str, Any] | None,
        evidence: Evidence | None,
        note: str | None = None,
    ) -> None:
        """An HTTP call has been answered as expected, or has failed."""
        job = attempt.job
        if evidence is None and attempt.ending is None:
            told = {"result_note": note} if note else {}
            self.completed([completed_row(attempt, self._clock.now(), result, told)])
            self.freed()
            return
        failed = evidence or Evidence(task=job.task, message="the call was ended")
        self._settle(
            attempt,
            End(
                job=job,
                began_at=None,
                ended_at=self._clock.now(),
                ended=self._failed(job, failed),
                known={"status_code": failed.status, "result": result},
            ),
        )

    def lost(
        self,
        job: InHand,
        attempt: Attempt | None,
        began_at: int,
        how: str,
        signal: str | None,
        *,
        wrote: bool,
        too_long: bool,
        left: dict[str, list[int]],
    ) -> None:
        """The process that ran an attempt is gone without a word, ended by that signal maybe."""
        ending = attempt.ending if attempt is not None else None
        definition = attempt.definition if attempt else self.definitions.tasks.get(job.task)
        limits = definition.task.limits if definition else None
        evidence = death_evidence(job, how, signal, limits)
        self._settle(
            attempt,
            End(
                job=job,
                began_at=None if attempt else began_at,
                ended_at=self._clock.now(),
                ended=self._failed(job, evidence),
                log=wrote,
                is_too_long=too_long,
                first=("action_lost", {"how": how}) if evidence.kind and not ending else None,
                left=left,
            ),
        )

    def returned(self, job: InHand, attempt: Attempt) -> None:
        """A worker hands a job back that was taken for begun: nothing was executed."""
        now = self._clock.now()
        match attempt.ending:
            case Ending.CANCEL | Ending.KILL | Ending.RESTART | Ending.DRAIN:
                self._settle(attempt, End(job=job, began_at=None, ended_at=now, ended=None))
            case _:  # what was noticed of it meanwhile was its worker's doing
                self._interrupted(job, now, "its worker gave it back before it began")

    def left_behind(self, job: InHand, ending: Ending | None, by: str | None) -> None:
        """An earlier daemon died while it ran; `ending` is what was being done about it."""
        now = self._clock.now()
        evidence = lost_evidence(job, "the daemon died while it ran")
        told = End(job=job, began_at=None, ended_at=now, ended=self._failed(job, evidence))
        match ending:
            case Ending.CANCEL | Ending.KILL:
                kind = "job_cancelled" if ending is Ending.CANCEL else "job_killed"
                self._cancelled(told, kind, by)
            case Ending.RESTART:
                self._interrupted(job, now, by or "restart", "job_restarted")
            case _:
                first = ("action_lost", {"how": evidence.message})
                self._decide(None, msgspec.structs.replace(told, first=first))

    def unfit(
        self, job: InHand, began_at: int | None, why: str, error_type: str = "template"
    ) -> None:
        """What is to be run cannot be made of the job's arguments."""
        ended = self._failed(job, permanent_evidence(job, error_type, why))
        now = self._clock.now()
        self._settle(None, End(job=job, began_at=began_at, ended_at=now, ended=ended))

    def cannot_start(self, job: InHand, began_at: int | None, error: Exception) -> None:
        """A defect of ours, at the cost of this job: others, and slots, wait behind it."""
        log.exception("job %d cannot be started", job.id)
        self.unfit(job, began_at, f"it cannot be started: {error}", "cannot_start")

    def put_aside(self, job: InHand, problem: Exception) -> None:
        """Its row makes no sense: it is a person's to look at, and needs nothing more of the row."""
        ended = self._unreadable(job, problem)
        self._put_aside(End(job=job, began_at=None, ended_at=self._clock.now(), ended=ended))

    def put_off(self, job: InHand, began_at: int | None, why: RedriveError) -> None:
        """What it needs cannot be had just now: it waits a moment, at no cost."""
        text = "job %d waits, and is tried again every %g s: %s (%s)"
        self._seldom.warn(text, job.id, PUT_OFF, why.message, why.hint, about=why.message)
        later = self._store.now() + round(PUT_OFF * SECOND)
        now = self._clock.now()
        self._interrupted(job, now, why.message, began_at=began_at, available_at=later)

    def put_back(self, job: InHand, why: str, *, has_begun: bool) -> None:
        """It was leased and will not be started; whether its begin is in the log."""
        if has_begun:
            self._interrupted(job, self._clock.now(), why)
        else:
            self.gave_back([job])

    # ---- putting it together -----------------------------------------------------------------

    def freed(self) -> None:
        """There may be room now."""
        for tell in self.when_freed:
            tell()

    def _failed(self, job: InHand, evidence: Evidence) -> facts.Failed:
        found = self.definitions.rulebook.classify(evidence)
        redact = self.definitions.config.redact
        told = msgspec.structs.replace(
            evidence,
            message=redact(evidence.message),
            traceback=evidence.traceback and redact(evidence.traceback),
        )
        return facts.Failed(found, told)

    def _settle(self, attempt: Attempt | None, told: End) -> None:
        job = told.job
        ending = attempt.ending if attempt is not None else None
        if ending is None and told.is_too_long:  # it ended before anybody looked
            ending = Ending.LOG_LIMIT
        match ending:
            case Ending.CANCEL | Ending.KILL as how:
                kind = "job_cancelled" if how is Ending.CANCEL else "job_killed"
                self._cancelled(told, kind, attempt.by if attempt else None)
                return
            case Ending.RESTART | Ending.DRAIN as how:
                kind = "job_restarted" if how is Ending.RESTART else "job_interrupted"
                by = attempt.by if attempt is not None else None
                self._interrupted(job, told.ended_at, by or how, kind, began_at=told.began_at)
                return
            case Ending.STALLED | Ending.TIMEOUT as how:
                assert attempt is not None
                told = self._accused(told, overdue_evidence(job, attempt, how))
            case Ending.LOG_LIMIT:
                definition = attempt.definition if attempt else self.definitions.tasks[job.task]
                limit = definition.task.limits.output
                words = f"it wrote more than {limit} bytes of output; see `limits.output`"
                told = self._accused(told, permanent_evidence(job, "log_limit", words))
            case _:
                pass
        self._decide(attempt, told)

    def _accused(self, told: End, evidence: Evidence) -> End:
        return msgspec.structs.replace(told, ended=self._failed(told.job, evidence), first=None)

    def _decide(self, attempt: Attempt | None, told: End) -> None:
        try:
            found = decide(self._facts(attempt, told))
        except Exception as problem:  # noqa: BLE001 - of one row: the others are to be settled
            unreadable = self._unreadable(told.job, problem)
            self._put_aside(msgspec.structs.replace(told, ended=unreadable))
            return
        error = error_record(told, found) if isinstance(told.ended, facts.Failed) else None
        events = list(events_of(told, found, error))
        if error is not None:
            self._breakers.note(told.job.task, failed_transiently=error.category == "transient")
        self._write(told, found, error, events)

    def _facts(self, attempt: Attempt | None, told: End) -> Facts:
        job = told.job
        definition = attempt.definition if attempt else self.definitions.tasks.get(job.task)
        policy = definition.policy if definition else RetryPolicy(max_attempts=job.max_attempts)
        known = facts_of(job)
        assert told.ended is not None
        return Facts(
            ended=told.ended,
            now=self._store.now(),
            roll=random.random(),
            leased_from=JobState(job.leased_from),
            life_started_at=job.life_started_at,
            attempts=job.attempt,
            max_attempts=job.max_attempts,
            lost=job.lost,
            max_lost=definition.task.max_lost if definition else 3,
            unknown=job.unknowns,
            policy=self.definitions.step_policy(job.pinned, job.step) or policy,
            on_lost=definition.task.on_lost if definition else "retry",
            known={**known, "data": known["args"], **told.known},
        )

    def _unreadable(self, job: InHand, problem: Exception) -> facts.Failed:
        return self._failed(job, unreadable_evidence(job, problem))

    def _put_aside(self, told: End) -> None:
        found = put_aside(told.job)
        error = error_record(told, found)
        self._write(told, found, error, events_of(told, found, error))

    def _cancelled(self, told: End, kind: str, by: str | None) -> None:
        data: dict[str, Any] = {"by": by, "was": "leased", **told.left}
        if told.log:
            data["log"] = log_name(told.job)
        self._write(told, Verdict(state=JobState.CANCELLED), None, [(kind, data)])

    def _interrupted(
        self,
        job: InHand,
        at: int,
        by: str,
        kind: str = "job_interrupted",
        *,
        began_at: int | None = None,
        available_at: int | None = None,
    ) -> None:
        told = End(job=job, began_at=began_at, ended_at=at, ended=None)
        found = Verdict(
            state=JobState(job.leased_from),
            refund=True,
            interruptions=1,
            available_at=self._store.now() if available_at is None else available_at,
        )
        self._write(told, found, None, [(kind, {"by": by})])

    def _write(
        self,
        told: End,
        found: Verdict,
        error: ErrorRecord | None,
        events: Sequence[tuple[str, dict[str, Any]]],
    ) -> None:
        for tell in self.when_ended:
            tell(told.job.task, found.state, 1)
        self._store.post(end, ended_row(told, found, error, events))
        self.freed()
