"""Text from outside, before a terminal sees it.

Arguments, error messages and output are written by others, and a terminal obeys escape
sequences wherever they come from: they can move the cursor, set the title, fill the
clipboard. Nothing but printable characters leaves this module.
"""

from __future__ import annotations

import re

# The string of an OSC, DCS, SOS, PM or APC sequence ends at BEL or ST. When its end is missing,
# only the introducer goes: hiding an error behind an open sequence is just what a hostile
# text would want.
_SEQUENCE = re.compile(
    r"(?:\x1b[\]PX^_]|[\x90\x98\x9d-\x9f])(?:[^\x07\x1b\x80-\x9f\n]{0,4096}(?:\x07|\x1b\\|\x9c))?"
    r"|(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]?"
    r"|\x1b[ -/]*[0-~]?"
)
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# Invisible characters that reorder, join or hide what stands beside them.
_HIDDEN = re.compile(
    r"[\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb"
    r"\ud800-\udfff\U000e0000-\U000e007f]"
)


def clean_lines(text: str) -> str:
    """Lines and tabs stay."""
    printable = _CONTROL.sub("", _SEQUENCE.sub("", text))
    return _HIDDEN.sub(lambda match: f"<U+{ord(match[0]):04X}>", printable)


def clean(text: str) -> str:
    """One line."""
    return " ".join(clean_lines(text).split())
