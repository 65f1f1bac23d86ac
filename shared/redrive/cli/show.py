"""`redrive show`: everything about a job or a run."""

from __future__ import annotations

import json
from typing import Any

import click

from redrive.cli import kinds, words
from redrive.cli.output import Column, print_fields, print_heading, print_json, print_table, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Verb
from redrive.clock import SECOND
from redrive.deciding.standing import retrying
from redrive.models import Attempt, Budgets, Decision, ErrorRecord, Job, StepState, plain
from redrive.protocol.queries import JobReply, RunReply
from redrive.protocol.rows import Plan

_SHOWN = 10  # executions, the last ones; as JSON there are up to 1,000
_LINES = 20  # of a message
_HISTORY = (
    Column("EXEC", right=True),
    Column("LIFE", right=True),
    Column("ATT", right=True),
    Column("STARTED"),
    Column("RAN", right=True),
    Column("OUTCOME", coloured=True),
    Column("DECISION", shrinks=True),
    Column("ERROR", shrinks=True),
)
_STEPS = (
    Column("STEP"),
    Column("JOB", right=True),
    Column("STATE", coloured=True),
    Column("ATT", right=True),
    Column("WHY", shrinks=True),
    Column("ERROR", shrinks=True),
)


@click.command(cls=Verb, examples=["redrive show 12", "redrive show r7 --json"])
@click.argument("id", type=kinds.id)
@click.pass_obj
def show(settings: Settings, id: str) -> None:
    """Show everything about a job (12) or a run (r7).

    Its state and budgets, its attempts and their errors, and what to do next. With --json its
    last 1,000 executions, as far as a message holds them; `redrive events ID` tells of all.

    Of a run with more than 4 MiB to tell, the longest results and errors are told in short:
    `{"left_out": ...}` stands where a result was, and each job still has its own.
    """
    with settings.client() as client:
        reply = client.show_run(id) if id.startswith("r") else client.show_job(int(id))
    match reply:
        case RunReply() if settings.as_json:
            print_json({**plain(reply.run), "next": reply.next})
        case RunReply():
            _print_run(reply)
        case JobReply() if settings.as_json:
            shown = plain(reply)
            print_json({**shown.pop("job"), **shown})
        case JobReply():
            _print_job(reply)


def _print_job(reply: JobReply) -> None:
    job, now = reply.job, words.now()
    print_fields(
        [
            ("job", f"{job.id}  {job.task}"),
            ("state", _state(job, now)),
            ("attempts", f"{job.attempts} of {job.max_attempts} executions, life {job.life}"),
            ("budgets", job.budgets and _budgets(job.budgets)),
            ("queue", " ".join(filter(None, [job.queue, job.operation, job.mode]))),
            ("priority", job.priority or None),
            ("run", job.run and f"{job.run}, step {job.step}"),
            ("batch", job.batch),
            ("unique", job.unique),
            ("args", _json(job.args or None)),
            ("enqueued", words.absolute(job.created_at)),
            ("scheduled", job.scheduled_for and words.absolute(job.scheduled_for)),
            ("due", job.available_at and words.absolute(job.available_at)),
            ("started", job.started_at and words.absolute(job.started_at)),
            ("heartbeat", job.heartbeat_at and words.relative(job.heartbeat_at, now)),
            ("finished", job.finished_at and words.absolute(job.finished_at)),
            ("node", job.node),
            ("progress", job.progress and _json(plain(job.progress))),
            ("uses", reply.usage and f"pids {', '.join(map(str, reply.usage.pids))},"
             f" cpu {reply.usage.cpu:.0f}% on average, memory {words.size(reply.usage.memory)}"),
            ("result", _json(job.result)),
            ("note", reply.history[-1].result_note if reply.history else None),
            ("metrics", _json(job.metrics or None)),
            ("policy", reply.policy),
        ]
    )  # fmt: skip
    if job.error is not None:
        _print_error(job.error)
    if reply.history:
        shown = reply.history[-_SHOWN:]
        earlier = shown[0].execution - 1
        print_heading(f"History, without the first {earlier:,}" if earlier else "History")
        print_table(_HISTORY, map(_history_row, shown), empty="")
    if reply.plan:
        print_heading("To come, if every attempt fails")
        for plan in reply.plan:
            say(_plan(plan, now, job.held))
    if reply.next:
        print_heading(f"Next: {reply.next}")


def _print_run(reply: RunReply) -> None:
    run = reply.run
    print_fields(
        [
            ("run", f"{run.id}  {run.pipeline} version {run.version}"),
            ("state", run.state if run.status in ("", run.state) else f"{run.state}, {run.status}"),
            ("batch", run.batch),
            ("key", run.key),
            ("args", _json(run.args or None)),
            ("started", words.absolute(run.created_at)),
            ("finished", run.finished_at and words.absolute(run.finished_at)),
            ("completed", run.last_completed),
            ("metrics", _json(run.metrics or None)),
        ]
    )
    print_heading("Steps")
    print_table(_STEPS, map(_step_row, run.steps), empty="no steps")
    if reply.next:
        print_heading(f"Next: {reply.next}")


def _print_error(error: ErrorRecord) -> None:
    print_heading("Last error")
    print_fields(
        [
            ("type", _kind(error)),
            ("message", _end_of(error.message)),
            ("meaning", error.user_message),
            ("guidance", error.guidance),
            ("stage", error.stage),
            ("at", words.absolute(error.timestamp)),
            ("traceback", error.traceback),
        ]
    )


def _kind(error: ErrorRecord) -> str:
    if error.rule != error.decided_by:
        return f"{error.error_type}, {error.decided_by}"
    return f"{error.error_type} ({error.category}), by {error.rule}"


def _end_of(message: str) -> str:
    """What went wrong stands at the end of it: for commands it is the end of their output."""
    lines = message.splitlines()
    before = len(lines) - _LINES
    if before <= 0:
        return message
    return "\n".join([f"({before:,} lines before these, with --json)", *lines[before:]])


def _state(job: Job, now: int) -> str:
    word = words.state_word(job, now)
    if (retry := retrying(job.state, job.attempts, job.max_attempts)) is not None:
        word = retry if word == "retrying" else f"{word}, {retry}"
    if job.reason:
        word = f"{word} ({job.reason})"
    if job.available_at is not None and job.available_at > now and not job.finished_at:
        word = f"{word}, {words.relative(job.available_at, now)}"
    return word


def _budgets(budgets: Budgets) -> str:
    return (
        f"lost {budgets.lost} of {budgets.max_lost},"
        f" requeued by hand {budgets.manual_retries} of {budgets.max_manual_retries},"
        f" interrupted {budgets.interruptions}, snoozed {budgets.snoozes}"
    )


def _history_row(attempt: Attempt) -> tuple[object, ...]:
    decision = attempt.decision
    return (
        attempt.execution,
        attempt.life,
        attempt.attempt,
        words.absolute(attempt.started_at),
        _ran(attempt),
        attempt.outcome or "running",
        decision and _decided(decision),
        attempt.error and f"{attempt.error.error_type}: {attempt.error.message}",
    )


def _decided(decision: Decision) -> str:
    """What follows, and by which rule; what happened stands in the other columns."""
    follows = decision.because.rpartition(": ")[2]
    return f"{decision.rule}: {follows}" if follows else decision.rule


def _ran(attempt: Attempt) -> str | None:
    if attempt.started_at is None or attempt.ended_at is None:
        return None
    return words.span((attempt.ended_at - attempt.started_at) / SECOND)


def _step_row(step: StepState) -> tuple[object, ...]:
    error = step.error and f"{step.error.error_type}: {step.error.message}"
    attempts = f"{step.attempts}/{step.max_attempts}"
    return step.name, step.job, step.state, attempts, step.why, error


def _plan(plan: Plan, now: int, held: bool) -> str:
    at_once = "once it is released" if held else "due now"
    about = "about " if plan.approximate else ""
    last = ", the last" if plan.last else ""
    when = f"{about}{words.relative(plan.at, now)}" if plan.at > now else at_once
    return f"  attempt {plan.attempt}  {when}{last}"


def _json(value: Any) -> str | None:
    return None if value is None else json.dumps(value, ensure_ascii=False, default=str)
