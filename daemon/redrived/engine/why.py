"""Why a job is where it is, in words: what it waits for, or which rule decided and what it saw.

Pure: the API gathers what holds, this says it. The first reason that keeps the job from
running is the answer; those behind it would only come into play once it is gone.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from redrive.deciding.because import spell
from redrive.deciding.standing import retrying, why_dead
from redrive.errors import RedriveError
from redrive.instants import SECOND, iso
from redrive.lifecycle import JobState
from redrive.models import Attempt, Decision, Job
from redrive.protocol.queries import WhyReply
from redrive.protocol.rows import Pause
from redrived.engine.why_ending import BeingEnded, ending


class Circumstances(Struct, frozen=True, kw_only=True):
    """What holds for a job at a moment."""

    now: int
    waits: str | None  # ready | due | key | held | batch
    is_known: bool = True  # its task is in the config
    hold: Pause | None = None
    queue_pause: Pause | None = None
    task_pause: Pause | None = None
    breaker: str | None = None  # open | probing
    breaker_why: str = ""
    probe_at: int = 0
    trouble: str | None = None  # the store's, in words
    is_draining: bool = False
    pool: str | None = None
    pool_trouble: str | None = None
    no_room: RedriveError | None = None  # on the machine, for one more like it
    workers: int = 0  # of its pool that do work
    idle_workers: int = 0
    starting_workers: int = 0
    busy: int = 0
    slots: int = 0
    reserved: int = 0  # slots that others keep
    queue_running: int = 0
    queue_limit: int | None = None
    queue_rate: str | None = None
    task_running: int = 0
    task_limit: int | None = None
    task_rate: str | None = None
    queue_rate_used: bool = False  # all of it
    task_rate_used: bool = False
    limit_key: str | None = None
    key_limit: int | None = None
    key_running: int = 0
    ahead: int = 0  # ready jobs that go first
    last: Attempt | None = None
    end: BeingEnded | None = None  # of the attempt that runs
    cleared_by: int | None = None  # the job that clears its data before it is run again


def explain(job: Job, at: Circumstances) -> WhyReply:
    if at.cleared_by is not None:
        text = f"it is requeued, and job {at.cleared_by} clears the data of its step first"
        hint = f"`redrive why {at.cleared_by}` says what that waits for"
        return _reply(job, "clearing", text, {"clearing": at.cleared_by}, hint=hint)
    match job.state:
        case JobState.LEASED:
            return _running(job, at)
        case JobState.DONE:
            return _reply(job, "done", _done(job))
        case JobState.CANCELLED:
            return _reply(
                job, "cancelled", "it was cancelled", hint=f"`redrive events {job.id}` says by whom"
            )
        case JobState.DEAD:
            return _dead(job, at)
        case _:
            return _waiting(job, at)


def _running(job: Job, at: Circumstances) -> WhyReply:
    if job.started_at is None:
        text = f"it lies in a worker's hand on node {job.node} and begins in a moment"
        return _reply(job, "in_hand", text)
    if at.end is not None:
        code, text, saw, hint = ending(at.end, at.now)
        return _reply(job, code, text, saw, hint=hint)
    ran = spell((at.now - job.started_at) / SECOND)
    text = f"it has been running for {ran} on node {job.node}, attempt {job.attempts}"
    return _reply(job, "running", text, {"attempt": job.attempts, "node": job.node})


def _done(job: Job) -> str:
    return f"it succeeded with attempt {job.attempts} of {job.max_attempts}"


def _dead(job: Job, at: Circumstances) -> WhyReply:
    decision = at.last.decision if at.last else None
    code = f"dead_{job.reason}" if job.reason else "dead"
    text = (decision and decision.because) or why_dead(job.reason, job.max_attempts)
    saw = dict(decision.saw) if decision else {}
    force = " --force" if job.reason == "permanent" else ""
    hint = _sentence(job.error.guidance) if job.error and job.error.guidance else ""
    hint += f"`redrive requeue {job.id}{force}` gives it another life"
    return _reply(job, code, text or "it failed for good", saw, decision, hint)


def _sentence(guidance: str) -> str:
    """What a rule's author wrote, with or without a full stop, before what follows it."""
    words = guidance.rstrip()
    return f"{words} " if words.endswith((".", "!", "?", ":", "…")) else f"{words}. "


def _waiting(job: Job, at: Circumstances) -> WhyReply:
    decision = at.last.decision if at.last and job.state is JobState.RETRY else None
    code, text, saw, hint = _obstacle(job, at)
    if decision is not None and decision.because:
        text = f"{text}; before that: {_of_executions(decision.because)}"
    return _reply(job, code, text, saw, decision, hint)


def _of_executions(because: str) -> str:
    """Beside `Retrying (attempt 1/2)`, which counts retries, what is counted here must be said."""
    counted = "attempt "
    return f"execution {because.removeprefix(counted)}" if because.startswith(counted) else because


def _obstacle(job: Job, at: Circumstances) -> tuple[str, str, dict[str, Any], str]:
    """What keeps a waiting job from running: code, words, values, what to do."""
    if not at.is_known:  # first, for no release and no time will start it
        text = f"its task {job.task} is not in the config"
        return "no_task", text, {"task": job.task}, "define it and `redrive reload`"
    if at.waits == "held":
        text = f"it is held{_by_whom(at.hold)}" if at.hold else "it is held"
        return "held", text, {}, f"`redrive release {job.id}` lets it go"
    if at.waits == "batch":
        text = f"its retry waits until every run of batch {job.batch} has tried {job.step} once"
        return "batch", text, {"batch": job.batch}, f"`redrive run-now {job.id}` drops the wait"
    if at.waits == "due" and job.available_at is not None:
        return _not_due(job, job.available_at, at)
    for kind, pause in (("queue", at.queue_pause), ("task", at.task_pause)):
        if pause is not None:
            text = f"{kind} {pause.name} is paused{_by_whom(pause)}"
            return f"{kind}_paused", text, {}, f"`redrive resume {kind}:{pause.name}`"
    if at.breaker is not None:
        text = f"the breaker of {job.task} is {at.breaker}: {at.breaker_why}"
        probe = f"the next probe is due at {iso(at.probe_at)}"
        return "breaker_open", text, {"probe_at": iso(at.probe_at)}, probe
    if at.is_draining:
        return "draining", "the node drains and starts nothing more", {}, "restart its daemon"
    if at.trouble is not None:
        return "store", f"the store is in trouble: {at.trouble}", {}, "`redrive doctor`"
    if at.pool is not None and at.workers == 0:
        why = at.pool_trouble or ("its first is starting" if at.starting_workers else "")
        text = ": ".join(filter(None, [f"pool {at.pool} has no worker that works", why]))
        return "no_pool", text, {"pool": at.pool}, f"look at [pools.{at.pool}] and `redrive doctor`"
    if at.no_room is not None:
        return "no_room", at.no_room.message, {}, at.no_room.hint
    return _limit(job, at) or _no_slot(job, at)


def _by_whom(pause: Pause) -> str:
    why = f": {pause.why}" if pause.why else ""
    return f" by {pause.by} since {iso(pause.at)}{why}"


def _not_due(job: Job, due: int, at: Circumstances) -> tuple[str, str, dict[str, Any], str]:
    wait = (due - at.now) / SECOND
    saw = {"available_at": iso(due), "in_seconds": round(wait, 3)}
    hint = f"`redrive run-now {job.id}` drops the wait"
    if at.last is not None and at.last.outcome == "snoozed":
        text = f"its handler asked to wait until {iso(due)}, in {spell(wait)}"
        return "snoozed", text, saw, hint
    if job.state is JobState.RETRY:
        text = f"{retrying(job.state, job.attempts, job.max_attempts)}, in {spell(wait)}"
        return "backoff", text, saw, hint
    return "scheduled", f"it is scheduled for {iso(due)}, in {spell(wait)}", saw, hint


def _limit(job: Job, at: Circumstances) -> tuple[str, str, dict[str, Any], str] | None:
    """A limit that is reached."""
    key_limit = at.key_limit or 1
    if at.limit_key is not None and at.key_running >= key_limit:
        text = f"its key {at.limit_key} has {at.key_running} of {key_limit} running"
        return "key_limit", text, {"key": at.limit_key, "running": at.key_running}, ""
    if at.task_limit is not None and at.limit_key is None and at.task_running >= at.task_limit:
        text = f"task {job.task} has {at.task_running} of {at.task_limit} running"
        return "task_limit", text, {"running": at.task_running, "limit": at.task_limit}, ""
    if at.queue_limit is not None and at.queue_running >= at.queue_limit:
        text = f"queue {job.queue} has {at.queue_running} of {at.queue_limit} running"
        return "queue_limit", text, {"running": at.queue_running, "limit": at.queue_limit}, ""
    for name, rate, is_used in (
        (f"task {job.task}", at.task_rate, at.task_rate_used),
        (f"queue {job.queue}", at.queue_rate, at.queue_rate_used),
    ):
        if is_used:
            text = f"{name} has used up its rate of {rate}"
            return "rate", text, {"rate": rate}, "it goes on as the window moves"
    return None


def _no_slot(job: Job, at: Circumstances) -> tuple[str, str, dict[str, Any], str]:
    """What is full, or who goes first."""
    if at.busy + at.reserved >= at.slots:
        kept = f", {at.reserved} kept for other queues" if at.reserved else ""
        text = f"all slots are taken: {at.busy} of {at.slots} busy{kept}"
        return "slots", text, {"busy": at.busy, "slots": at.slots, "reserved": at.reserved}, ""
    if at.pool is not None and at.idle_workers == 0:
        saw: dict[str, Any] = {"pool": at.pool, "workers": at.workers}
        if at.starting_workers:
            return "pool", f"pool {at.pool} is starting another worker", saw, ""
        text = f"all workers of pool {at.pool} are busy: {at.workers} of {at.workers}"
        return "pool", text, saw, f"`processes` of [pools.{at.pool}] says how many there may be"
    if at.ahead:
        first = "1 ready job goes" if at.ahead == 1 else f"{at.ahead} ready jobs go"
        return "order", f"{first} before it", {"ahead": at.ahead}, ""
    return "ready", "it is ready and is leased in a moment", {}, ""


def _reply(
    job: Job,
    code: str,
    text: str,
    saw: dict[str, Any] | None = None,
    decision: Decision | None = None,
    hint: str = "",
) -> WhyReply:
    return WhyReply(
        id=str(job.id),
        state=job.state,
        code=code,
        text=text,
        saw=saw or {},
        decision=decision,
        hint=hint,
    )
