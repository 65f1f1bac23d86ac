"""Which errors are the same error: what groups dead jobs.

Two failures are alike when their type, the wording of their message and the place in the
code agree. The wording is the first line without what changes from one job to the next;
the place is the innermost frame of the traceback without its line number, so that a group
outlives an edit above it.
"""

from __future__ import annotations

import re
from hashlib import blake2s

from redrive.printable import without_sequences

LONGEST_SIGNATURE = 300  # characters of a message that are looked at

_HOST_ENDINGS = (
    "arpa|cloud|cluster|com|corp|dev|edu|eu|example|home|internal|intranet|invalid|io|lan|local|"
    "localdomain|net|org|svc|test|de|uk|us|fr|nl|ch|at"
)
# One after the other; later ones see what earlier ones left.
_TAKEN_OUT: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern), placeholder)
    for pattern, placeholder in (
        # An apostrophe inside a word does not open a quotation.
        (r"(?<!\w)'[^']*'(?!\w)|(?<!\w)\"[^\"]*\"|`[^`]*`|‘[^’]*’|“[^”]*”", "<value>"),
        (r"(?<=://)[^\s,;)\]}>]+", "<host>"),
        (r"[\w.+-]+@[\w-]+(?:\.[\w-]+)*", "<id>"),
        (r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b", "<id>"),
        (r"\b\d{1,3}(?:\.\d{1,3}){3}\b(?::\d+)?", "<host>"),
        (r"(?<![\w:])\[?[0-9a-fA-F:]*::[0-9a-fA-F:]*\]?(?::\d+)?", "<host>"),
        (rf"\b(?:[\w-]+\.)+(?:{_HOST_ENDINGS})\b(?::\d+)?|\blocalhost\b(?::\d+)?", "<host>"),
        (r"(?<![\w.-])[\w-]+:\d{4,5}\b", "<host>"),
        (r"(?<![\w<>/])(?:[A-Za-z]:\\|~/|\.{1,2}/|/(?!/))[^\s:,;()\[\]{}]+", "<path>"),
        (r"\b0[xX][0-9a-fA-F]+\b", "<id>"),
        (r"\b(?=[0-9]*[a-fA-F])(?=[a-fA-F]*[0-9])[0-9a-fA-F]{8,}\b", "<id>"),
        (r"\b(?=[0-9]*[A-Za-z])(?=[A-Za-z]*[0-9])[0-9A-Za-z]{16,}\b", "<id>"),
        (r"(?<![A-Za-z0-9])\d+(?:[.,]\d+)*", "<n>"),
    )
)
_FRAME = re.compile(r'[\s|+]*File "(?:[^"]*[/\\])?([^"/\\]+)", line \d+, in (.+)')


def fingerprint(error_type: str, message: str, traceback: str | None = None) -> str:
    """Twelve hex digits that alike failures share."""
    parts = (error_type, signature(message), _innermost_frame(traceback or ""))
    return blake2s("\n".join(parts).encode(errors="replace")).hexdigest()[:12]


def signature(message: str) -> str:
    """The wording of a message, with what changes from job to job taken out."""
    text = _telling_line(without_sequences(message))[:LONGEST_SIGNATURE]
    for pattern, placeholder in _TAKEN_OUT:
        text = pattern.sub(placeholder, text)
    return " ".join(text.split())


def _telling_line(message: str) -> str:
    """The first line; of a traceback the last, where the exception is named."""
    lines = [line for line in message.splitlines() if line.strip()]
    if not lines:
        return ""
    return lines[-1] if lines[0].startswith("Traceback (most recent call") else lines[0]


def _innermost_frame(traceback: str) -> str:
    for line in reversed(traceback.splitlines()):
        if found := _FRAME.match(line):
            file, function = found.groups()
            return f"{file}:{function.strip()}"
    return ""
