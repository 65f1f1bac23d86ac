"""The line at the bottom: the keys that matter here, as many as fit."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from textual.keys import format_key

from redrive_tui.formatting import Line, apart, width_of
from redrive_tui.keys import keys_of

ALWAYS = ("app.palette", "app.help")
IN_A_FILTER = {
    "enter": "use",
    "tab": "complete",
    "up": "earlier",
    "?": "explain",
    "escape": "leave",
}
LEAST_WIDTH, LEAST_HEIGHT = 60, 16


def hints(
    screen: str,
    keymap: Mapping[str, str],
    width: int,
    height: int,
    impossible: Collection[str],
    *,
    ascii: bool = False,
) -> Line:
    """What can be pressed; what would be refused right now is dim."""
    if width < LEAST_WIDTH or height < LEAST_HEIGHT:
        needs = f"needs {LEAST_WIDTH}x{LEAST_HEIGHT} to show more"
        return apart([("? ", "key"), ("help", "dim")], [(needs, "warning")], width)
    shown: dict[str, Line] = {}
    for key in keys_of(screen):
        if key.hint:
            name = shown_key(keymap.get(key.id, key.keys), ascii=ascii)
            role = "rule" if key.id in impossible else "dim"
            shown[key.id] = [(name, "key"), (f" {key.hint}  ", role)]
    ends = [span for id in ALWAYS for span in shown.pop(id)]
    line: Line = [(" ", "")]
    for entry in shown.values():
        if width_of(line) + width_of(entry) + width_of(ends) > width - 1:
            break
        line += entry
    return apart(line, ends, width)


def filter_hints(*, ascii: bool = False) -> Line:
    """While a filter is typed: letters are letters then."""
    line: Line = [(" ", "")]
    for key, does in IN_A_FILTER.items():
        line += [(shown_key(key, ascii=ascii), "key"), (f" {does}  ", "dim")]
    return line


def shown_key(keys: str, *, ascii: bool = False) -> str:
    """The first key of an action, as people write it."""
    first = keys.split(",")[0]
    return first if len(first) == 1 or ascii else format_key(first)
