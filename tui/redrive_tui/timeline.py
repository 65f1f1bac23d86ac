"""The life of a job, drawn: its attempts, the waits between them to scale, what is to come."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from redrive.lifecycle import JobState
from redrive.models import Attempt, Event, Json
from redrive.protocol.queries import JobReply
from redrive.protocol.rows import Plan
from redrive_tui.formatting import Line, Look, ago, duration, fit, seconds_between, until, width_of
from redrive_tui.job_cells import error_words
from redrive_tui.sanitize import clean
from redrive_tui.time_axis import time_axis

ROOM_FOR_NODES = 80
ROOM_FOR_LONG_BARS = 72
_GAP: Line = [("  ", "")]
TITLES = ("ATT", "STARTED", "RAN", "RESULT", "NODE")
AN_HOUR = 8  # cells of a time of today; one of another day takes what it needs
_LEFT_OVER = {
    "left_behind": ("still ran when the attempt ended, and were killed", "dim"),
    "escaped": ("had left the session of the attempt, and were killed", "dim"),
    "unkillable": ("unkillable, still there", "error"),
}
_OUTCOMES = {
    "done": "done",
    "snoozed": "scheduled",
    "interrupted": "held",
    "cancelled": "cancelled",
}


def timeline(
    reply: JobReply, events: Sequence[Event], now: int, look: Look, width: int
) -> list[Line]:
    """Everything about when: where it came from, each attempt, the plan, the axis."""
    lines: list[Line] = [_origin(reply, events, now, look), []]
    room = Room(width=width, started=1 + max(map(len, _starts(reply, now, look))))
    lines.append(_row([[(title, "title")] for title in TITLES], [("WAIT AFTER", "title")], room))
    waits = _waits(reply)
    longest = max((wait for wait in waits if wait is not None), default=0.0)
    cells = _bar_cells(width)
    left_over = _left_over(events)
    for step, wait in _steps(reply, events):
        match step:
            case Event():
                lines.append(_requeued(step, now, look))
            case Attempt():
                bar = _wait(wait, longest, cells, look, "retrying")
                lines.append(_attempted(step, bar, now, look, room))
                lines += [*_result_note(step), *_left_lines(left_over.get(step.started_at, {}))]
            case Plan():
                bar = _wait(wait, longest, cells, look, "scheduled")
                lines.append(_planned(step, reply.job.state, bar, now, look, room))
    if reply.plan:
        lines += [[], *time_axis(reply, now, look, width)]
    if reply.policy:
        lines += [[], [("policy  ", "title"), (clean(reply.policy), "text")]]
    if reply.next:
        lines += [[], [("next    ", "title"), (clean(reply.next), "accent")]]
    return lines


def _steps(
    reply: JobReply, events: Sequence[Event]
) -> Iterator[tuple[Attempt | Event | Plan, float | None]]:
    """Attempts, requeues by hand and planned attempts, in order, each with the wait after it."""
    requeues = [event for event in events if event.type == "job_requeued"]
    waits = iter(_waits(reply))
    for attempt in reply.history:
        while requeues and attempt.started_at is not None and requeues[0].at <= attempt.started_at:
            yield requeues.pop(0), None
        yield attempt, next(waits)
    for event in requeues:
        yield event, None
    for plan in reply.plan:
        yield plan, next(waits)


def _waits(reply: JobReply) -> list[float | None]:
    """After each attempt, had or planned: how long until the next begins."""
    spans = [(attempt.started_at, attempt.ended_at) for attempt in reply.history]
    spans += [(plan.at, plan.at) for plan in reply.plan]
    following = [start for start, _ in spans[1:]] + [None] * bool(spans)
    return [
        max(0.0, seconds_between(end, start)) if end is not None and start is not None else None
        for (_, end), start in zip(spans, following, strict=True)
    ]


def _origin(reply: JobReply, events: Sequence[Event], now: int, look: Look) -> Line:
    job = reply.job
    first = events[0] if events else None
    by = first.data.get("by") if first is not None else None
    return [
        (look.moment(job.created_at, now), "dim"),
        (f"  enqueued by {clean(str(by))}" if by else "  enqueued", "text"),
        (f" (unique key {clean(job.unique)})" if job.unique else "", "text"),
        (f"  {ago(job.created_at, now)}", "dim"),
        (f"  {job.attempts} of {job.max_attempts} executions in life {job.life}", "text"),
    ]


class Room(Struct, frozen=True, kw_only=True):
    """How many cells there are."""

    width: int
    started: int


def _starts(reply: JobReply, now: int, look: Look) -> Iterator[str]:
    yield " " * AN_HOUR
    for attempt in reply.history:
        if attempt.started_at is not None:
            yield look.moment(attempt.started_at, now)
    for plan in reply.plan:
        yield look.moment(plan.at, now)


def _row(cells: Sequence[Line], wait: Line, room: Room) -> Line:
    """Number, start, run time, result, node; the wait follows, as long as it is."""
    number, started, ran, result, node = cells
    line: Line = [*fit(number, 3, right=True), *_GAP, *fit(started, room.started), *_GAP]
    line += [*fit(ran, 7, right=True), *_GAP]
    rest = room.width - width_of(line) - 10 - _bar_cells(room.width)
    if room.width < ROOM_FOR_NODES:
        return [*line, *fit(result, rest), *_GAP, *wait]
    return [*line, *fit(result, rest - 10), *_GAP, *fit(node, 8), *_GAP, *wait]


def _bar_cells(width: int) -> int:
    return 16 if width >= ROOM_FOR_LONG_BARS else 8


def _attempted(attempt: Attempt, wait: Line, now: int, look: Look, room: Room) -> Line:
    started, ran = "-", ""
    if attempt.started_at is not None:
        started = look.moment(attempt.started_at, now)
        ran = duration(seconds_between(attempt.started_at, attempt.ended_at or now))
    cells: list[Line] = [
        [(str(attempt.execution), "strong")],
        [(started, "text")],
        [(ran, "text")],
        _result(attempt, look),
        [(clean(attempt.node or "-", 40), "dim")],
    ]
    return _row(cells, wait, room)


def _result(attempt: Attempt, look: Look) -> Line:
    if attempt.ended_at is None:
        return [look.state("running")]
    if attempt.error is not None:
        return [(f"{look.glyph('dead')} ", "dead"), (error_words(attempt.error), "text")]
    word = _OUTCOMES.get(attempt.outcome or "", "dead")
    return [(f"{look.glyph(word)} {clean(attempt.outcome or 'ended', 40)}", word)]


def _result_note(attempt: Attempt) -> list[Line]:
    note = attempt.result_note
    return [[(f"     ! {clean(note)}", "dim")]] if note else []


def _left_over(events: Sequence[Event]) -> dict[int | None, dict[str, Json]]:
    """By when attempts began: processes that their end had to look for, and could not end."""
    found: dict[int | None, dict[str, Json]] = {}
    told: dict[str, Json] = {}  # of the attempt that the events have come to
    last = ""
    for event in events:
        if event.type == "action_started":
            told = found[event.at] = {}
        elif last == "action_unkillable":  # it has gone since then, or is named again
            told.pop("unkillable", None)
        told |= {kind: event.data[kind] for kind in _LEFT_OVER if event.data.get(kind)}
        last = event.type
    return found


def _left_lines(told: Mapping[str, Json]) -> list[Line]:
    return [
        [("     ! ", role), (f"{words}: pid {clean(str(told[kind]).strip('[]'))}", role)]
        for kind, (words, role) in _LEFT_OVER.items()
        if kind in told
    ]


def _wait(wait: float | None, longest: float, cells: int, look: Look, role: str) -> Line:
    if wait is None or longest <= 0:
        return []
    bar = look.span_bar(wait / longest, cells)
    return [(f"{duration(wait):<7} ", "text"), (bar, role)]


def _requeued(event: Event, now: int, look: Look) -> Line:
    by, why = event.data.get("by"), event.data.get("reason")
    return [
        ("  »  ", "accent"),
        (look.moment(event.at, now), "text"),
        ("  requeued: a new life", "accent"),
        (f", by {clean(str(by))}" if by else "", "accent"),
        (f', "{clean(str(why))}"' if why else "", "accent"),
    ]


def _planned(plan: Plan, state: JobState, wait: Line, now: int, look: Look, room: Room) -> Line:
    result = f"{look.glyph('scheduled')} {until(plan.at, now)}"
    if plan.at <= now:
        runs = state is JobState.LEASED
        due = "once this attempt has failed" if runs else "due, waits for a slot"
        result = f"{look.glyph('queued')} {due}"
    if plan.last:
        result += ", then dead"
    started = f"{'~' if plan.approximate else ''}{look.moment(plan.at, now)}"
    return _row(
        [[(text, "scheduled")] for text in (str(plan.attempt), started, "", result, "")],
        wait,
        room,
    )
