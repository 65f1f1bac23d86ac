"""What an attempt printed, from bytes to lines: whole lines, as a terminal would show them."""

from __future__ import annotations

import codecs

ERROR_WORDS = ("error", "exception", "traceback", "fatal", "critical", "panic")


class Lines:
    """Takes bytes as they come; a line is given out once its end has been seen."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._begun = ""

    def feed(self, data: bytes, *, finished: bool = False) -> list[str]:
        text = self._begun + self._decoder.decode(data, finished)
        *whole, self._begun = text.split("\n")
        if finished and self._begun:
            whole.append(self._begun)
            self._begun = ""
        return [_overprinted(line) for line in whole]


def _overprinted(line: str) -> str:
    """What is left of a line that went back to its start, as progress bars do."""
    return line.rstrip("\r").rpartition("\r")[2]


def last_line(data: bytes) -> str:
    """The last line of some output that says anything."""
    lines = Lines().feed(data, finished=True)
    return next((line for line in reversed(lines) if line.strip()), "")


def is_error(line: str) -> bool:
    low = line.lower()
    return any(word in low for word in ERROR_WORDS)
