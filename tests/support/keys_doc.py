"""docs/keys.md, from the console's table of keys."""

from __future__ import annotations

from collections.abc import Sequence

from redrive_tui.keys import FIXED, KEYS, Key

_BEGINNING = """\
# Keys of the console

Lowercase looks, or does what is safe and reversible. A capital changes work that is running, or
cannot be taken back. `?` shows the keys of the screen you are on, and runs them.

Other keys for the same actions stand in a file that `[console] keymap` names, one line for each:
`"job.kill" = "ctrl+x"`. It is refused whole when an action or a key is unknown, when two actions
of a screen share a key, or when something marked † is put on a plain lowercase letter.
This page is written by `make docs` from the console's table.
"""
_TITLES = {
    "everywhere": "Everywhere",
    "movement": "Moving",
    "open": "Opening",
    "filter": "Filtering and sorting",
    "marks": "Marking jobs",
    "tabs": "Tabs",
    "jobs": "Jobs: acting",
    "job": "Jobs: looking",
    "group": "Error groups",
    "redrive": "Redrives",
    "run": "Runs",
    "pausable": "Queues and schedules",
    "queue": "Queues",
    "schedule": "Schedules",
    "node": "Nodes",
    "text": "Output and events",
    "times": "Events",
}


def rendered() -> str:
    tables = (_table(_TITLES[context], keys) for context, keys in KEYS.items())
    return _BEGINNING + "".join(tables) + _table("Not to be moved", FIXED)


def _table(title: str, keys: Sequence[Key]) -> str:
    rows = "".join(_row(key) for key in keys)
    return f"\n## {title}\n\n| key | does | action |\n|---|---|---|\n{rows}"


def _row(key: Key) -> str:
    pressed = " ".join(f"`{each}`" for each in key.keys.split(","))
    mark = " †" if key.destructive else ""
    return f"| {pressed} | {key.description}{mark} | {f'`{key.id}`' if key.id else ''} |\n"
