"""Patterns that people write into a config, matched in time linear in the text.

RE2 does the work and nothing else may: Python's own `re` backtracks, so one pattern such
as `(a+)+$` could stop the daemon for minutes. What RE2 refuses, we refuse.
"""

from __future__ import annotations

from functools import lru_cache
from importlib import import_module
from typing import Any

from redrive.errors import UsageProblem

LONGEST_PATTERN = 512  # characters
TAIL = 64 * 1024  # of a text; what went wrong is said last
_MEMORY = 1024 * 1024  # bytes one compiled pattern may take


class Pattern:
    """A compiled pattern; upper and lower case are the same to it."""

    def __init__(self, text: str, compiled: Any) -> None:
        self.text = text
        self._compiled = compiled

    def found_in(self, text: str) -> bool:
        """Whether the last 64 KiB of `text` hold a match."""
        return self._compiled.search(text[-TAIL:].encode(errors="replace")) is not None


@lru_cache(maxsize=1024)
def compile_pattern(text: str) -> Pattern:
    """`text` as a pattern, or UsageProblem when it is too long or RE2 refuses it."""
    if len(text) > LONGEST_PATTERN:
        raise UsageProblem(
            f"the pattern is {len(text)} characters long",
            hint=f"write it with at most {LONGEST_PATTERN}, or split it into several rules",
        )
    return Pattern(text, _compile(text))


def any_of(patterns: tuple[str, ...]) -> Pattern:
    """One pattern that is found where any of ours is; for built-in ones, so not limited."""
    text = "|".join(f"(?:{pattern})" for pattern in patterns)
    return Pattern(text, _compile(text))


def _compile(text: str) -> Any:
    re2: Any = import_module("re2")  # has no types; loaded by whoever first needs a pattern
    options = re2.Options()
    options.max_mem = _MEMORY
    options.case_sensitive = False
    options.never_capture = True
    options.log_errors = False
    try:
        return re2.compile(text.encode(errors="replace"), options)
    except re2.error as refused:
        raise UsageProblem(
            f'the pattern "{text}" does not compile: {_reason(refused)}',
            hint="RE2 syntax has no look-around, no back-references and no repeats over 1000",
        ) from refused


def _reason(refused: Exception) -> str:
    (reason,) = refused.args
    return reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
