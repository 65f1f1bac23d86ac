"""How attempts end, as evidence that rules can judge: what workers and commands say of it, and
what the daemon itself has noticed.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from redrive.config.sections import Limits
from redrive.deciding import facts
from redrive.instants import SECOND
from redrive.orders import LONGEST_DELAY
from redrive.rules import Evidence, Said
from redrived.engine.attempt import Attempt, Ending
from redrived.processes import wire
from redrived.processes.command import Exit
from redrived.processes.signals import signal_name
from redrived.store.picking import InHand

LONGEST_TYPE = 200  # characters of an error type, by which people filter
OF_A_SIGNAL = 128  # a shell's exit code, less the number of the signal
LIMIT_SIGNALS = {"SIGXCPU": "cpu", "SIGXFSZ": "file_size"}
_CONTROLS = re.compile(r"[\x00-\x1f\x7f]+")  # PostgreSQL keeps no NUL in a text


def reported_end(job: InHand, report: wire.Report) -> tuple[facts.Ended | None, dict[str, Any]]:
    """How a report ends the attempt, if not by a failure; and what conditions may ask."""
    result = msgspec.json.decode(bytes(report.result))
    failure = report.failure
    if report.outcome == "snoozed" and failure is not None and failure.until is not None:
        latest = report.began + report.took + round(LONGEST_DELAY * SECOND)
        return facts.Snoozed(min(failure.until, latest)), {}
    return None, {"result": result}


def report_evidence(job: InHand, report: wire.Report) -> Evidence:
    failure = report.failure or wire.Failure(names=[], message="it failed and did not say why")
    said = None
    if report.outcome in ("permanent", "transient"):
        said = Said(
            category="permanent" if report.outcome == "permanent" else "transient",
            type=failure.type and _CONTROLS.sub(" ", failure.type)[:LONGEST_TYPE],
            retry_after=failure.retry_after,
        )
    return Evidence(
        task=job.task,
        stage=job.step or job.task,
        message=failure.message,
        exception=tuple(failure.names),
        traceback=failure.traceback,
        said=said,
    )


def exit_evidence(job: InHand, exited: Exit, limits: Limits | None) -> Evidence:
    signal = exited.signal
    if exited.code is not None and exited.code > OF_A_SIGNAL:
        # What a shell says of a program that a signal has ended; others mean anything by it.
        told = signal_name(exited.code - OF_A_SIGNAL)
        signal = told if _limit_behind(told, limits) else None
    return Evidence(
        task=job.task,
        stage=job.step or job.task,
        message=exited.stderr_tail or exited.stdout_tail or _in_words(exited, signal, limits),
        exit_code=exited.code,
        signal=signal,
        oom=exited.oom,
    )


def _in_words(exited: Exit, signal: str | None, limits: Limits | None) -> str:
    words = f"ended by {signal}" if signal else f"exit code {exited.code}"
    limit = _limit_behind(signal, limits)
    return f"{words}: see `limits.{limit}`" if limit else words


def _limit_behind(signal: str | None, limits: Limits | None) -> str | None:
    """The limit of the task for which the kernel sends that signal, if it has that one."""
    name = LIMIT_SIGNALS.get(signal or "")
    return name if name and getattr(limits, name, None) else None


def death_evidence(job: InHand, how: str, signal: str | None, limits: Limits | None) -> Evidence:
    """The worker died: lost, unless the kernel ended it for a limit of the task."""
    limit = _limit_behind(signal, limits)
    if limit is None:
        return lost_evidence(job, how)
    return Evidence(
        task=job.task,
        stage=job.step or job.task,
        message=f"{how}: see `limits.{limit}`",
        signal=signal,
    )


def lost_evidence(job: InHand, how: str) -> Evidence:
    """The process that ran it is gone without a word."""
    return Evidence(kind="lost", task=job.task, stage=job.step or job.task, message=how)


def overdue_evidence(job: InHand, attempt: Attempt, how: Ending) -> Evidence:
    """It stalled or ran out of time; how it died of that says nothing."""
    definition = attempt.definition
    if how is Ending.STALLED:
        words = f"no sign of life for {definition.stalled_after:g} s"
        words += ", while the code of its task was imported" if attempt.is_importing else ""
    else:
        words = f"still running after its timeout of {definition.task.timeout:g} s"
    return Evidence(
        kind="stalled" if how is Ending.STALLED else "timeout",
        task=job.task,
        stage=job.step or job.task,
        message=words,
    )


def permanent_evidence(job: InHand, error_type: str, message: str) -> Evidence:
    """What no other attempt could do better."""
    return Evidence(
        task=job.task,
        stage=job.step or job.task,
        message=message,
        said=Said(category="permanent", type=error_type),
    )
