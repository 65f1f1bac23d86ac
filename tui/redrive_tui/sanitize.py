"""Text from outside, made safe for a terminal.

Arguments, error messages and the output of jobs are written by others. A terminal obeys
escape sequences wherever they come from: they can move the cursor, set the title, fill the
clipboard. What leaves this module holds printable characters only; colours survive as
records, never as bytes. Nothing else in the console may draw text that has not been here.
"""

from __future__ import annotations

import re

LIMIT = 2_000  # characters of one line; beyond it nobody reads
CUT = "›"

# A string sequence (OSC, DCS, SOS, PM, APC) ends at BEL or ST. When its end is missing we
# drop only the introducer: a terminal would swallow the rest, and hiding an error message
# behind an open sequence is just what a hostile text would want.
_STRING = (
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x80-\x9f\n]{0,4096}(?:\x07|\x1b\\|\x9c))?"
)
_CSI = r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
_OTHER_ESCAPE = r"\x1b[ -/]*[0-~]?"
_SEQUENCE = re.compile(f"{_STRING}|{_CSI}|{_OTHER_ESCAPE}")
_SGR = re.compile(r"(?:\x1b\[|\x9b)([0-9;:]*)m")
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_BREAK = re.compile(r"[\r\n\u2028\u2029]+")
# Invisible characters that reorder, join or hide what stands beside them, and halves of
# surrogate pairs, which cannot even be written.
_HIDDEN = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u202a-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARK = r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILED_MARKS = re.compile(f"({_MARK}{{3}}){_MARK}+")

_NAMES = ("black", "red", "green", "yellow", "blue", "magenta", "cyan", "white")
_COLOURS = {30 + index: name for index, name in enumerate(_NAMES)} | {
    90 + index: f"bright_{name}" for index, name in enumerate(_NAMES)
}
_ATTRIBUTES = {1: "bold", 2: "dim", 3: "italic", 4: "underline", 7: "reverse", 9: "strike"}


def clean(text: str, limit: int = LIMIT) -> str:
    """One line, without anything a terminal would obey."""
    shortened = text[: limit * 4]  # bounds the work; sequences may still be cut out of it
    flat = _BREAK.sub(" ", _SEQUENCE.sub("", shortened)).expandtabs(4)
    return _cut(_visible(flat), limit, longer=len(text) > len(shortened))


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


def _visible(text: str) -> str:
    without = _PILED_MARKS.sub(r"\1", _CONTROL.sub("", text))
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", without)


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
