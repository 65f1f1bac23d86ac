"""Past attempts and those to come on one line; times far from now stand closer together."""

from __future__ import annotations

from math import log1p

from redrive.protocol.queries import JobReply
from redrive_tui.formatting import Line, Look, Span, seconds_between


def time_axis(reply: JobReply, now: int, look: Look, width: int) -> list[Line]:
    """Two lines: the axis with its marks, and where now is."""
    past = [attempt.started_at for attempt in reply.history if attempt.started_at is not None]
    first = look.moment(past[0] if past else now, now)
    last = reply.plan[-1]
    end = f" {'~' if last.approximate else ''}{look.moment(last.at, now)}"
    room = max(20, width - len(first) - len(end) - 2)
    middle = room // 3 if past else 0
    line, dots, here = ("-", ".", "|") if look.ascii else ("─", "┄", "┃")
    cells: list[Span] = [(line, "rule")] * middle + [(dots, "rule")] * (room - middle)
    times = [*past, *(plan.at for plan in reply.plan)]
    behind, ahead = _far(now, min(times)), _far(now, max(times))

    def place(at: int) -> int:
        if at > now:
            return middle + round(_far(now, at) / ahead * (room - middle - 1))
        return middle - round(_far(at, now) / behind * middle) if behind else middle

    cells[middle] = (here, "strong")
    for attempt in reply.history:
        if attempt.started_at is not None:
            word = "running" if attempt.ended_at is None else "dead" if attempt.error else "done"
            cells[place(attempt.started_at)] = (look.glyph(word), word)
    for plan in reply.plan:
        cells[place(plan.at)] = (str(plan.attempt)[-1], "scheduled")
    axis: Line = [(f"{first} ", "dim"), *cells, (end, "dim")]
    return [axis, [(" " * (len(first) + 1 + middle), ""), ("now", "dim")]]


def _far(one: int, other: int) -> float:
    return log1p(abs(seconds_between(one, other)))
