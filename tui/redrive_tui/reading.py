"""Pages to read: why a job is where it is, its arguments, its error, its events."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from redrive.event_words import words_of
from redrive.models import ErrorRecord, Event, Job
from redrive.protocol.announcements import JobVitals
from redrive.protocol.queries import WhyReply
from redrive.protocol.rows import GroupRow
from redrive_tui.command_log import CommandLog
from redrive_tui.formatting import Line, Look, ago, percent, plural, size, word_of
from redrive_tui.job_cells import error_words
from redrive_tui.sanitize import clean, clean_lines
from redrive_tui.wishes import command_line

_FATE_ROLES = {
    "sent": "accent",
    "done": "good",
    "partly": "warning",
    "refused": "error",
    "unknown": "warning",
}


def why_lines(why: WhyReply) -> list[Line]:
    lines: list[Line] = [[(part, "strong")] for part in clean_lines(why.text)]
    decision = why.decision
    if decision is not None:
        lines += [[], [("rule     ", "title"), (clean(decision.rule), "text")]]
        lines.append([("because  ", "title"), (clean(decision.because), "text")])
    saw = why.saw or (decision.saw if decision is not None else {})
    if saw:
        lines += [[], [("saw", "title")]]
        lines += [
            [(f"  {clean(name, 40)}  ", "dim"), (clean(_json(value)), "text")]
            for name, value in saw.items()
        ]
    if why.hint:
        lines += [[], [(clean(why.hint), "accent")]]
    return lines


def args_lines(job: Job) -> list[Line]:
    """Arguments and result, as JSON one can read."""
    lines = [*_document("arguments", job.args)]
    if job.result is not None:
        lines += [[], *_document("result", job.result)]
    if job.metrics:
        lines += [[], *_document("metrics of the last attempt", job.metrics)]
    return lines


def error_lines(error: ErrorRecord | None, look: Look) -> list[Line]:
    if error is None:
        return [[("no error", "dim")]]
    lines: list[Line] = [[(error_words(error), "dead")], []]
    told = error.user_message or ""
    facts = {
        "for people": told,
        "what to do": error.guidance,
        "category": error.category,
        "decided by": error.decided_by,
        "stage": error.stage or "",
        "when": look.absolute(error.timestamp) if error.timestamp else "",
        "group": error.fingerprint,
    }
    lines += [
        [(f"{name:<12}", "title"), (clean(text), "text")] for name, text in facts.items() if text
    ]
    if error.traceback:
        lines += [[], [("traceback", "title")]]
        lines += [[(text, "dim")] for text in clean_lines(error.traceback)]
    return lines


def event_line(event: Event, now: int, look: Look) -> Line:
    """An event in one line; what its data says follows its type."""
    subject = f"{event.job}" if event.job is not None else event.run or ""
    word = word_of(event.state) if event.state else ""
    return [
        (f"{look.time_exact(event.at, now)}  ", "dim"),
        (f"{clean(event.type, 40):<22}", _event_role(event.type, word)),
        (f"  {clean(subject, 20):<9}", "strong"),
        (f"{event.attempts if event.attempts is not None else '':>3}  ", "dim"),
        (clean(words_of(event), 400), "text"),
    ]


def event_lines(events: Sequence[Event], now: int, look: Look) -> list[Line]:
    return [event_line(event, now, look) for event in events] or [[("no event is kept", "dim")]]


def is_bad(event: Event) -> bool:
    return _event_role(event.type, event.state or "") in {"dead", "warning"}


def _event_role(type: str, word: str) -> str:
    if any(
        part in type for part in ("error", "exhausted", "lost", "terminal", "failed", "rejected")
    ):
        return "dead"
    if any(
        part in type for part in ("retry", "stalled", "late", "timeout", "paused", "breaker", "low")
    ):
        return "warning"
    return word if word in {"done", "running", "cancelled"} else "text"


def guidance_lines(group: GroupRow, now: int) -> list[Line]:
    """What is known of a cause, and what to do about it."""
    head: Line = [
        (clean(group.user_message or group.error_type, 120), "strong"),
        (f"  {clean(group.category, 40)}", "warning" if group.category == "transient" else "dim"),
    ]
    shares = " · ".join(
        _most(name, counts)
        for name, counts in (("task", group.tasks), ("queue", group.queues))
        if counts
    )
    span = f"first {ago(group.first_at, now)}, last {ago(group.last_at, now)} · {clean(shares)}"
    lines = [head, [(clean(group.signature), "dead")], [(span, "dim")]]
    if group.name:
        most = f", most of them {clean(group.error_type, 60)}" if group.errors > 1 else ""
        named = f"  {plural(group.errors, 'cause')}{most}"
        lines.insert(0, [(clean(group.name, 80), "strong"), (named, "dim")])
    if group.retrying:
        more = f"{plural(group.retrying, 'more job')} with this error still retrying"
        lines.append([(more, "retrying")])
    if group.guidance:
        lines.append([("what to do  ", "title"), (clean(group.guidance), "text")])
    return lines


def _most(name: str, counts: dict[str, int]) -> str:
    """The names with the most, and what part of all they are."""
    ranked = sorted(counts.items(), key=lambda item: -item[1])
    total = sum(counts.values()) or 1
    shown = ", ".join(f"{each} {percent(count / total)}" for each, count in ranked[:2])
    return f"{name} {shown}" if len(ranked) <= 2 else f"{name} {shown}, {len(ranked) - 2} more"


def usage_line(vitals: JobVitals) -> Line:
    """What a running job uses; empty for one that has no process."""
    if vitals.cpu is None or vitals.memory is None:
        return []
    used = [f"cpu {percent(vitals.cpu / 100)}", f"memory {size(vitals.memory)}"]
    if vitals.children is not None:  # an older daemon does not tell
        used.append(plural(vitals.children + 1, "process", "processes"))
    return [("uses  ", "title"), (" · ".join(used), "text")]


def command_lines(log: CommandLog, look: Look) -> list[Line]:
    """Everything asked from here, newest first: what, its fate, the same as a command."""
    lines: list[Line] = []
    for entry in reversed(log.entries):
        fate = entry.fate
        lines.append(
            [
                (f"{look.time(entry.at)}  ", "dim"),
                (f"{fate.word:<8}", _FATE_ROLES[fate.word]),
                (entry.wish.words, "strong"),
                (f"  {clean(fate.detail)}" if fate.detail else "", "text"),
            ]
        )
        lines += [[(f"{'':<18}{command_line(entry.wish)}", "dim")], []]
    lines += [
        [(f"{look.time(at)}  ", "dim"), (clean(text), "text")] for at, text in reversed(log.notes)
    ]
    return lines or [[("nothing has been asked for yet", "dim")]]


def _document(title: str, value: object) -> list[Line]:
    text = msgspec.json.format(msgspec.json.encode(value), indent=2).decode()
    return [[(title, "title")], *([(line, "text")] for line in clean_lines(text))]


def _json(value: object) -> str:
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()
