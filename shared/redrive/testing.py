"""Try a task with its policy, in memory and at once: no daemon, no waiting.

    trial = rehearse(fetch, {"url": "..."}, retry=3)
    assert trial.state == "done"
    assert [attempt.delay for attempt in trial.attempts] == [5.0, None]

Errors are classified and retries decided by the code the daemon uses; only the clock is
made up, and jumps over every wait.
"""

from __future__ import annotations

import asyncio
import inspect
import json
import time
import traceback
from collections.abc import Callable, Coroutine, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextvars import copy_context
from datetime import datetime
from typing import Any

from msgspec import Struct

from redrive import nesting
from redrive.config.sections import ErrorRule, Retry
from redrive.deciding.facts import Ended, Facts, Failed, Snoozed, Succeeded
from redrive.deciding.guidance import once_over
from redrive.deciding.verdict import Verdict, decide
from redrive.instants import SECOND, from_datetime
from redrive.job import RESULT_AT_MOST, CurrentJob, running
from redrive.lifecycle import JobState
from redrive.models import Decision, ErrorRecord, Json
from redrive.orders import checked_args
from redrive.outcomes import Permanent, Snooze, Transient
from redrive.policy import RetryPolicy, resolve
from redrive.rules import Evidence, Rulebook, Said

# Not all: the test itself may be interrupted, skipped or failed while the handler runs.
_FAILURES = (Exception, SystemExit, asyncio.CancelledError)

MOST_EXECUTIONS = 1_000  # a task that snoozes for ever is not rehearsed for ever


class Rehearsed(Struct, frozen=True, kw_only=True):
    """One execution."""

    attempt: int
    error: ErrorRecord | None = None
    decision: Decision | None = None
    delay: float | None = None  # seconds until the next execution
    progress: Sequence[Any] | None = None
    metrics: Mapping[str, Json] = {}


class Trial(Struct, frozen=True, kw_only=True):
    """How a job would have gone."""

    state: str  # done | dead
    reason: str | None
    result: Json
    attempts: list[Rehearsed]
    seconds: float  # of waiting between its executions
    claimed: frozenset[str]  # the keys of `job.once`


def rehearse(
    handler: Callable[..., Any],
    args: Mapping[str, Any] | None = None,
    *,
    retry: bool | int | str | Retry | None = None,
    policies: Mapping[str, Retry] | None = None,
    errors: Sequence[ErrorRule] = (),
) -> Trial:
    """Run a handler as a job until it is done or dead."""
    written = checked_args(dict(args or {}))
    return _Rehearsal(handler, written, resolve(retry, policies), Rulebook(errors)).run()


class _Rehearsal:
    """The `redrive.job.Transport` of a made-up job, and its life."""

    def __init__(
        self,
        handler: Callable[..., Any],
        args: str,
        policy: RetryPolicy,
        rulebook: Rulebook,
    ) -> None:
        self._handler = handler
        self._args = args  # as JSON, of which every execution makes its own
        self._policy = policy
        self._rulebook = rulebook
        self._claimed: set[str] = set()
        self._marked: set[str] = set()
        self._unknown = 0  # failures so far that nobody could classify
        self._now = self._began = time.time_ns() // 1000

    def run(self) -> Trial:
        attempts: list[Rehearsed] = []
        attempt = 1
        state = JobState.QUEUED
        for execution in range(1, MOST_EXECUTIONS + 1):
            job = self._job(attempt, execution)
            ended, result = self._execute(job)
            verdict = self._decide(ended, result, attempt, state)
            attempts.append(self._rehearsed(job, ended, verdict))
            if isinstance(ended, Failed):
                self._unknown += ended.classification.category == "unknown"
            if verdict.state in (JobState.DONE, JobState.DEAD):
                return self._trial(verdict.state, verdict.reason, result, attempts)
            self._now = max(self._now, verdict.available_at or 0)
            state = verdict.state
            attempt += 0 if verdict.refund else 1
        raise RuntimeError(f"the task was still not done after {MOST_EXECUTIONS} executions")

    def _decide(self, ended: Ended, result: Json, attempt: int, state: JobState) -> Verdict:
        args = json.loads(self._args)
        return decide(
            Facts(
                ended=ended,
                now=self._now,
                roll=0.5,  # the middle of the jitter
                leased_from=state,
                life_started_at=self._began,
                attempts=attempt,
                max_attempts=self._policy.max_attempts,
                unknown=self._unknown,
                policy=self._policy,
                known={"args": args, "data": args, "result": result},
            )
        )

    def _rehearsed(self, job: CurrentJob, ended: Ended, verdict: Verdict) -> Rehearsed:
        return Rehearsed(
            attempt=job.attempt,
            error=self._record(ended, job.attempt, verdict) if isinstance(ended, Failed) else None,
            decision=verdict.decision,
            delay=verdict.delay,
            progress=job.progress_made,
            metrics=job.metrics or {},
        )

    def _trial(
        self, state: str, reason: str | None, result: Json, attempts: list[Rehearsed]
    ) -> Trial:
        return Trial(
            state=state,
            reason=reason,
            result=result,
            attempts=attempts,
            seconds=(self._now - self._began) / SECOND,
            claimed=frozenset(self._claimed),
        )

    def _job(self, attempt: int, execution: int) -> CurrentJob:
        return CurrentJob(
            self,
            beat_every=0.0,
            id=1,
            lease=execution,
            attempt=attempt,
            max_attempts=self._policy.max_attempts,
            execution=execution,
            args=json.loads(self._args),
        )

    def _execute(self, job: CurrentJob) -> tuple[Ended, Json]:
        token = running.set(job)
        try:
            result = self._handler(**job.args)
            if inspect.isawaitable(result):
                result = _awaited(_value_of(result))
            result = _as_json(result)
        except Snooze as snooze:
            return Snoozed(self._until(snooze)), None
        except _FAILURES as error:
            return self._failed(error), None
        finally:
            job.mark_finished()
            running.reset(token)
        return Succeeded(), result

    def _until(self, snooze: Snooze) -> int:
        until = snooze.until
        if isinstance(until, datetime):
            return from_datetime(until)
        seconds = until if isinstance(until, int | float) else until.total_seconds()
        return self._now + round(seconds * SECOND)

    def _failed(self, error: BaseException) -> Failed:
        said = None
        if isinstance(error, Permanent | Transient):
            said = Said(
                category="permanent" if isinstance(error, Permanent) else "transient",
                type=error.type,
                retry_after=getattr(error, "retry_after", None),
            )
        evidence = Evidence(
            task=getattr(self._handler, "__name__", None),
            message=_message_of(error),
            exception=tuple(_names(type(error))),
            traceback="".join(traceback.format_exception(error)),
            said=said,
        )
        found = self._rulebook.classify(evidence)
        return Failed(found, evidence)

    def _record(self, ended: Failed, attempt: int, verdict: Verdict) -> ErrorRecord:
        found, evidence = ended.classification, ended.evidence
        is_over = verdict.state is JobState.DEAD
        return ErrorRecord(
            error_type=found.error_type,
            category=found.category,
            message=evidence.in_words,
            user_message=found.user_message,
            guidance=once_over(found.guidance) if is_over else found.guidance,
            timestamp=self._now,
            retry_count=attempt - 1,
            traceback=evidence.traceback,
            rule=found.rule,
        )

    # ---- what a running handler asks and says --------------------------------------------------

    def beat(self, job: CurrentJob) -> None:
        """Nobody watches a rehearsal."""

    def mark(self, job: CurrentJob, keys: list[str]) -> None:
        self._marked.update(keys)

    def marked(self, job: CurrentJob) -> set[str]:
        return set(self._marked)

    def once(self, job: CurrentJob, key: str) -> bool:
        is_first = key not in self._claimed
        self._claimed.add(key)
        return is_first


def _awaited(work: Coroutine[Any, Any, Any]) -> Any:
    """In a loop of its own, and in a thread of its own where that of an async test runs here."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(max_workers=1) as thread:
        return thread.submit(copy_context().run, asyncio.run, work).result()


async def _value_of(awaitable: Any) -> Any:
    return await awaitable


def _as_json(result: object) -> Json:
    """A result as the daemon keeps it, refused where that would be."""
    try:
        text = json.dumps(result, ensure_ascii=False, allow_nan=False)
    except (TypeError, ValueError, RecursionError) as error:
        problem = f"the result is nothing that JSON can hold ({error}); return plain data"
        raise Permanent(problem, type="invalid_result") from None
    if nesting.is_deep(result):
        problem = "the result is nested too deeply; return flatter data"
        raise Permanent(problem, type="invalid_result")
    size = len(text.encode("utf-8", "replace"))
    if size > RESULT_AT_MOST:
        problem = f"the result is {size} bytes of JSON, more than {RESULT_AT_MOST}"
        raise Permanent(f"{problem}; store it elsewhere and return where", type="invalid_result")
    return json.loads(text)


def _message_of(error: BaseException) -> str:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return f"sys.exit({error.code})"  # the number alone would say nothing
    return str(error)


def _names(raised: type) -> list[str]:
    return [
        each.__qualname__
        if each.__module__ == "builtins"
        else f"{each.__module__}.{each.__qualname__}"
        for each in raised.__mro__
        if each is not object
    ]
