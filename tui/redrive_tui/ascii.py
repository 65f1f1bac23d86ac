"""Plain characters for what frames, cuts and separates, whoever draws it.

The glyphs that mean something have words of their own in `formatting`; here is what is left:
borders, rules, scroll bars, the marks of a cut. Letters of other languages stay, they are data.
"""

from __future__ import annotations

from collections.abc import Mapping

from rich.segment import Segment
from textual.color import Color
from textual.filter import LineFilter

# Each as wide as what it stands for, or lines would no longer end where they should.
_PLAIN: Mapping[str, str] = {
    "-": "─━┄┅┈┉╌╍═╴╶╸╺╼╾▔▀‒–—",
    "|": "│┃┆┇┊┋╎╏║╵╷╹╻▌▐▍▎▏▊▋█▕",
    "_": "▁▂▃▄▅▆▇",
    "+": "┌┐└┘├┤┬┴┼╭╮╯╰╔╗╚╝┏┓┗┛▖▗▘▙▚▛▜▝▞▟±",
    ">": "›»→▸►▶…",
    "<": "‹«←◂◀",
    ".": "·•",
    "~": "≈",
    "x": "×",
    "^": "↑",
    "v": "↓",
    "/": "╱",
    "/ ": "🔎",
}
TABLE = str.maketrans({glyph: plain for plain, glyphs in _PLAIN.items() for glyph in glyphs})


class Ascii(LineFilter):
    """The last thing that happens to a line before the terminal gets it."""

    def apply(self, segments: list[Segment], background: Color) -> list[Segment]:
        return [
            segment
            if segment.text.isascii()
            else Segment(segment.text.translate(TABLE), segment.style, segment.control)
            for segment in segments
        ]
