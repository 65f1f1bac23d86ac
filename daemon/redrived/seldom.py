"""Trouble that lasts, and peers that cause it, may not fill the log."""

from __future__ import annotations

import logging
import time

_MOST = 100  # things that are told apart


class Seldom:
    """Lets one line a minute through, and says how many it kept back."""

    EVERY = 60.0

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._told: dict[str, tuple[float, int]] = {}  # when it was said, how often not since

    def warn(self, text: str, *values: object, about: str = "") -> None:
        """What is about something else is said at once."""
        self._say(logging.WARNING, text, *values, about=about)

    def exception(self, text: str, *values: object, about: str) -> None:
        self._say(logging.ERROR, text, *values, about=about, exc_info=True)

    def _say(
        self, level: int, text: str, *values: object, about: str, exc_info: bool = False
    ) -> None:
        now = time.monotonic()
        said, kept_back = self._told.get(about, (-self.EVERY, 0))
        if now < said + self.EVERY:
            self._told[about] = (said, kept_back + 1)
            return
        if kept_back:
            text, values = f"{text} (%d like this since the last one)", (*values, kept_back)
        self._log.log(level, text, *values, exc_info=exc_info)
        if len(self._told) == _MOST:
            self._told.clear()
        self._told[about] = (now, 0)
