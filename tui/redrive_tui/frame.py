"""The lines at the top of every screen: where one is, how fresh it is, what there is."""

from __future__ import annotations

from collections.abc import Mapping

from rich.cells import cell_len

from redrive.clock import SECOND
from redrive_tui.formatting import Line, Look, count, duration, plural, width_of
from redrive_tui.link_state import words
from redrive_tui.mirror import Mirror
from redrive_tui.sanitize import clean

TABS: Mapping[str, str] = {
    "overview": "Overview",
    "jobs": "Jobs",
    "dead": "Dead",
    "runs": "Runs",
    "queues": "Queues",
    "schedules": "Schedules",
    "nodes": "Nodes",
    "events": "Events",
}


def header(
    mirror: Mirror, address: str, look: Look, width: int, *, read_only: bool, standstill: str = ""
) -> Line:
    """The environment in its colour at the left, the link in words at the right.

    A screen that stands still says so beside the link, which may be as live as ever.
    """
    told: Line = [words(mirror.link, mirror.clock.monotonic())]
    if standstill:
        told = [(standstill, "warning"), ("  ", ""), *told]
    clock = look.time(mirror.now())
    welcome, status = mirror.welcome, mirror.status
    if welcome is None:
        left: Line = [(" redrive ", "environment:grey"), (f"  {address}", "dim")]
        return _spread(left, [told, [(clock, "dim")]], width)
    name = clean(welcome.environment or welcome.node, 24)
    nodes = len(status.nodes) if status else 0
    left = [(f" {name} ", f"environment:{welcome.colour or 'blue'}"), ("  ", "")]
    left += [(plural(nodes, "node"), "text"), (f"  {address}", "dim")]
    rights = "read only" if read_only or welcome.role == "viewer" else "operator"
    right: list[Line] = [told, [(clock, "text")]]
    right.append([(f"{clean(welcome.who, 24)} {rights}".strip(), "dim")])
    right.append([(f"seq {count(mirror.seq)}", "dim")])
    return _spread(left, right, width)


def tabs(mirror: Mirror, active: str, width: int) -> Line:
    """The screens and their keys; the dead are counted where one looks first."""
    dead = mirror.status.states.get("dead", 0) if mirror.status else 0
    wide, close, short = _tabs(active, dead, pad=" "), _tabs(active, dead), _numbers(active)
    return next((line for line in (wide, close) if width_of(line) <= width), short)


def banner(mirror: Mirror, address: str, look: Look, seen: float) -> list[Line]:
    """While the daemon is out of reach: since when, why, and how old what is seen is by now."""
    link = mirror.link
    if link.word == "version":
        return [[(f"{clean(address)}: {clean(link.detail)}", "error")]]
    if link.word != "lost":
        return []
    age = link.age(mirror.clock.monotonic())
    since = look.time(mirror.now() - int(age * SECOND))
    meaning = (
        "nothing is known of it yet"
        if link.heard is None
        else f"what you see is {duration(seen)} old"
    )
    return [
        [(f"cannot reach {clean(address)} since {since}", "error"), (f" · {meaning}", "warning")],
        [(clean(link.detail), "dim")],
    ]


def _tabs(active: str, dead: int, pad: str = "") -> Line:
    line: Line = []
    for number, (screen, title) in enumerate(TABS.items(), 1):
        if screen == active:
            line.append((f"{pad}{number} {title}{pad}", "tab"))
        else:
            line += [(f"{pad}{number} ", "key"), (f"{title}{pad}", "dim")]
        if screen == "dead" and dead:
            line += [
                (" " if not pad or screen == active else "", ""),
                (f"{count(dead)}{pad}", "dead"),
            ]
        line.append(("" if pad else " ", ""))
    return line[:-1]


def _numbers(active: str) -> Line:
    """Where the names do not fit, the numbers do, and the name of where one is."""
    line: Line = []
    for number, (screen, title) in enumerate(TABS.items(), 1):
        line.append((f" {number} {title} ", "tab") if screen == active else (f" {number} ", "key"))
    return line


def _spread(left: Line, right: list[Line], width: int) -> Line:
    """Left and right of one line; from the right, what does not fit is left out."""
    shown: Line = []
    for entry in right:
        more: Line = [*entry, ("  ", ""), *shown] if shown else entry
        if width_of(left) + width_of(more) + 2 > width and shown:
            break
        shown = more
    room = width - width_of(left) - width_of(shown) - 1
    while room < 1 and len(left) > 1:
        room += cell_len(left.pop()[0])
    return [*left, (" " * max(1, room), ""), *shown]
