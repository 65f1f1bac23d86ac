"""What a handler may say outright about how it ended.

Standard library only, Python 3.9 and later: this file is also read inside the
application's own interpreter, where nothing of ours is installed.
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Optional, SupportsFloat, Union

# Neither these words nor the value, which is the handler's, may sound like a failure of another
# kind: it is judged by its words first.
_RETRY_AFTER = "retry_after is seconds or a timedelta"
_UNTIL = "Snooze needs seconds, a timedelta or a datetime with a time zone"


class Outcome(Exception):
    """Raised by a handler to say what should become of the job."""


class Permanent(Outcome):
    """Trying again is pointless."""

    def __init__(self, message: str = "", *, type: Optional[str] = None) -> None:
        super().__init__(message)
        self.type = type


class Transient(Outcome):
    """Worth another attempt, at the earliest after `retry_after` (seconds)."""

    def __init__(
        self,
        message: str = "",
        *,
        retry_after: Union[float, timedelta, None] = None,
        type: Optional[str] = None,
    ) -> None:
        super().__init__(message)
        self.retry_after = None if retry_after is None else _seconds(retry_after, _RETRY_AFTER)
        self.type = type


class Snooze(Outcome):
    """Not now: come back at `until` (an aware datetime, or seconds from now). Costs no attempt."""

    def __init__(self, until: Union[datetime, timedelta, float], message: str = "") -> None:
        super().__init__(message)
        if isinstance(until, datetime):
            if until.tzinfo is None:
                raise ValueError("Snooze needs a datetime with a time zone, or seconds")
        elif not isinstance(until, timedelta):
            until = _seconds(until, _UNTIL)
        self.until = until


class Cancelled(BaseException):
    """Raised inside a running handler whose attempt is ended; says why. Clean up, let it pass."""


def _seconds(value: Union[SupportsFloat, timedelta], what: str) -> float:
    """Refused here, where a traceback leads to the line of the handler that is wrong."""
    if isinstance(value, timedelta):
        return value.total_seconds()
    if not hasattr(value, "__float__"):
        raise TypeError(f"{what}, not {type(value).__name__}")
    try:
        seconds = float(value)
    except OverflowError:
        seconds = math.inf
    if not math.isfinite(seconds):
        raise ValueError(f"{what}, not {seconds}")
    return seconds
