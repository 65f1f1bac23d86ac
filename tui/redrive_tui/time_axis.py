"""Past attempts and those to come on one line; times far from now stand closer together."""

from __future__ import annotations

from math import log1p

from redrive.protocol.queries import JobReply
from redrive_tui.formatting import Line, Look, Span, seconds_between


def time_axis(reply: JobReply, now: int, look: Look, width: int) -> list[Line]:
    """Two lines: the axis with its marks, and where now is."""
    past = [attempt.started_at for attempt in reply.history if attempt.started_at is not None]
    first = look.time(past[0]) if past else look.time(now)
    last = reply.plan[-1]
    end = f" {'~' if last.approximate else ''}{look.time(last.at)}"
    room = max(20, width - len(first) - len(end) - 2)
    middle = room // 3 if past else 0
    line, dots, here = ("-", ".", "|") if look.ascii else ("─", "┄", "┃")
    cells: list[Span] = [(line, "rule")] * middle + [(dots, "rule")] * (room - middle)
    farthest = max(
        abs(seconds_between(now, at)) for at in [*past, *(plan.at for plan in reply.plan)]
    )
    scale = log1p(farthest) or 1.0

    def place(at: int) -> int:
        side = middle if at <= now else room - middle - 1
        offset = round(log1p(abs(seconds_between(now, at))) / scale * side)
        return middle + (offset if at > now else -offset)

    cells[middle] = (here, "strong")
    for attempt in reply.history:
        if attempt.started_at is not None:
            word = "running" if attempt.ended_at is None else "dead" if attempt.error else "done"
            cells[place(attempt.started_at)] = (look.glyph(word), word)
    for plan in reply.plan:
        cells[place(plan.at)] = (str(plan.attempt)[-1], "scheduled")
    axis: Line = [(f"{first} ", "dim"), *cells, (end, "dim")]
    return [axis, [(" " * (len(first) + 1 + middle), ""), ("now", "dim")]]
