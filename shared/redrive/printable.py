"""Text from outside, as a terminal may have it.

Arguments, error messages and the output of jobs are written by others, and a terminal obeys
escape sequences wherever they come from: they can move the cursor, set the title, fill the
clipboard. The command line and the console both clean with what is here, and lay out the
rest as they need it.
"""

from __future__ import annotations

import re

# The string of an OSC, DCS, SOS, PM or APC sequence ends at BEL or ST. When its end is missing,
# only the introducer goes: a terminal would swallow the rest, and hiding an error behind an open
# sequence is just what a hostile text would want.
_SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x80-\x9f\n]{0,4096}(?:\x07|\x1b\\|\x9c))?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Invisible characters that reorder, join or hide what stands beside them, and halves of
# surrogate pairs, which cannot even be written.
_HIDDEN = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)
_MARK = r"[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_PILED_MARKS = re.compile(f"({_MARK}{{3}}){_MARK}+")


def without_sequences(text: str) -> str:
    """Escape sequences go, in 7 and in 8 bits."""
    return _SEQUENCE.sub("", text)


def visible(text: str) -> str:
    """Control characters go, lines and tabs stay; what cannot be seen is written out."""
    without = _PILED_MARKS.sub(r"\1", _CONTROL.sub("", text))
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", without)
