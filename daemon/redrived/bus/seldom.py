"""Warnings about peers, of whom none may fill the log."""

from __future__ import annotations

import logging
import time


class Seldom:
    """Lets one warning a minute through, and says how many it kept back."""

    EVERY = 60.0

    def __init__(self, log: logging.Logger) -> None:
        self._log = log
        self._next = 0.0
        self._kept_back = 0

    def warn(self, text: str, *values: object) -> None:
        now = time.monotonic()
        if now < self._next:
            self._kept_back += 1
            return
        self._log.warning(text + " (%d like this since the last one)", *values, self._kept_back)
        self._next = now + self.EVERY
        self._kept_back = 0
