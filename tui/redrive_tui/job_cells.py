"""A job as a row: what each column of the list says about it."""

from __future__ import annotations

from collections.abc import Collection

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Job, Progress
from redrive_tui.formatting import Line, Look, ago, duration, percent, state_word, until
from redrive_tui.sanitize import clean


def job_cells(job: Job, now: int, look: Look, late_nodes: Collection[str]) -> list[Line]:
    """ID, TASK, STATE, ATT, NEXT / RUNNING, QUEUE, NODE, LAST ERROR."""
    word = state_word(job, now)
    late = job.node in late_nodes
    return [
        [(str(job.id), "strong")],
        [(clean(job.task, 80), "text")],
        [look.state(word)],
        [(f"{job.attempts}/{job.max_attempts}", "dim")],
        when(job, now, look, word),
        [(clean(job.queue, 80), "text")],
        [(clean(job.node, 80) + ("?" if late else ""), "warning" if late else "dim")]
        if job.node
        else [("-", "dim")],
        last_error(job, late=late),
    ]


def when(job: Job, now: int, look: Look, word: str) -> Line:
    """How long it runs, when it comes next, or when it ended."""
    if job.state is JobState.LEASED:
        return _running(job, now, look)
    if job.finished_at is not None:
        return [(ago(min(job.finished_at, now), now), "dim")]
    if word == "held":
        return [("until released", "held")]
    if job.available_at is not None and job.available_at > now:
        return [(until(job.available_at, now), word)]
    return [(f"waits {duration((now - (job.available_at or job.created_at)) / SECOND)}", "dim")]


def _running(job: Job, now: int, look: Look) -> Line:
    if job.started_at is None:
        return [("in hand", "dim")]
    ran: Line = [(f"{duration((now - job.started_at) / SECOND):<7}", "running")]
    progress = job.progress
    if progress is None or not progress.total or progress.done is None:
        text = clean(progress.text, 40) if progress and progress.text else ""
        return [*ran, (f" {text}", "dim")]
    share = min(1.0, progress.done / progress.total)
    return [*ran, *look.bar(share, 5), (f" {percent(share)}", "text")]


def progress_words(progress: Progress | None) -> str:
    """How far it says it is, in few words."""
    if progress is None:
        return ""
    share = ""
    if progress.total and progress.done is not None:
        share = percent(min(1.0, progress.done / progress.total))
    return " ".join(part for part in (share, clean(progress.text or "", 60)) if part)


def last_error(job: Job, *, late: bool = False) -> Line:
    if late and job.state is JobState.LEASED:
        return [("(node late)", "warning")]
    if job.error is None:
        return []
    return [(error_words(job.error), "text" if job.state is JobState.DEAD else "dim")]


def error_words(error: ErrorRecord) -> str:
    """An error in one line: its type and what it said."""
    return clean(f"{error.error_type}: {error.message}" if error.message else error.error_type, 200)
