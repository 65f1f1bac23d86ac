"""Text from outside, made safe for a terminal.

What leaves this module is no longer than is read and holds printable characters only; colours
survive as records, never as bytes. Nothing in the console may draw text from outside that
has not been here.
"""

from __future__ import annotations

import re

from redrive.printable import visible, without_sequences

LIMIT = 2_000  # characters of one line; beyond it nobody reads
CUT = "›"

_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]*)m")
_BREAK = re.compile(r"[\r\n\u2028\u2029]+")

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOURS = {30 + index: name for index, name in enumerate(_NAMES)} | {
    90 + index: f"bright_{name}" for index, name in enumerate(_NAMES)
}
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}


def clean(text: str, limit: int = LIMIT) -> str:
    """One line, without anything a terminal would obey."""
    shortened = text[: limit * 4]  # bounds the work; sequences may still be cut out of it
    flat = _BREAK.sub(" ", without_sequences(shortened)).expandtabs(4)
    return _cut(visible(flat), limit, longer=len(text) > len(shortened))


def clean_lines(text: str, limit: int = LIMIT) -> list[str]:
    """The same for text whose lines mean something: a traceback, arguments."""
    return [clean(line, limit) for line in text[: limit * 100].splitlines()]


def coloured(text: str, limit: int = LIMIT) -> list[tuple[str, str]]:
    """One line of output as pieces, each with the style its SGR colours asked for."""
    pieces: list[tuple[str, str]] = []
    style = Sgr()
    room = limit
    position = 0
    for match in _SGR.finditer(text, 0, limit * 4):
        room -= _add(pieces, text[position : match.start()], style.spec, room)
        style.feed(match[1])
        position = match.end()
    _add(pieces, text[position:], style.spec, room)
    return pieces


def _add(pieces: list[tuple[str, str]], text: str, style: str, room: int) -> int:
    shown = clean(text, room) if text and room > 0 else ""
    if shown:
        pieces.append((shown, style))
    return len(shown)


def _cut(text: str, limit: int, *, longer: bool) -> str:
    return text[: limit - 1] + CUT if len(text) > limit or longer else text


class Sgr:
    """The colours in force, as a style that can be written down."""

    def __init__(self) -> None:
        self.foreground = ""
        self.background = ""
        self.attributes: set[str] = set()

    @property
    def spec(self) -> str:
        background = f"on {self.background}" if self.background else ""
        return " ".join(filter(None, [*sorted(self.attributes), self.foreground, background]))

    def feed(self, parameters: str) -> None:
        """Take in what stood between `ESC [` and `m`."""
        codes = [int(code or 0) for code in re.split("[;:]", parameters[:64]) if len(code) < 4]
        while codes:
            self._take(codes.pop(0), codes)

    def _take(self, code: int, following: list[int]) -> None:
        if code == 0:
            self.foreground, self.background = "", ""
            self.attributes.clear()
        elif code in _ATTRIBUTES:
            self.attributes.add(_ATTRIBUTES[code])
        elif code == 22:
            self.attributes -= {"bold", "dim"}
        elif code - 20 in _ATTRIBUTES:
            self.attributes.discard(_ATTRIBUTES[code - 20])
        elif code == 38:
            self.foreground = _extended(following)
        elif code == 48:
            self.background = _extended(following)
        elif code in _COLOURS or code == 39:
            self.foreground = _COLOURS.get(code, "")
        elif code - 10 in _COLOURS or code == 49:
            self.background = _COLOURS.get(code - 10, "")


def _extended(codes: list[int]) -> str:
    """Takes the rest of a 256-colour or true-colour code off the front of `codes`."""
    match codes:
        case [5, number, *_] if number < 256:
            del codes[:2]
            return f"color({number})"
        case [2, red, green, blue, *_] if max(red, green, blue) < 256:
            del codes[:4]
            return f"#{red:02x}{green:02x}{blue:02x}"
        case _:
            codes.clear()
            return ""
