"""What a handler may say outright about how it ended.

Standard library only, Python 3.9 and later: this file is also read inside the
application's own interpreter, where nothing of ours is installed.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Optional, Union


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
        self.retry_after = (
            retry_after.total_seconds() if isinstance(retry_after, timedelta) else retry_after
        )
        self.type = type


class Snooze(Outcome):
    """Not now: come back at `until` (an aware datetime, or seconds from now). Costs no attempt."""

    def __init__(self, until: Union[datetime, timedelta, float], message: str = "") -> None:
        super().__init__(message)
        if isinstance(until, datetime) and until.tzinfo is None:
            raise ValueError("Snooze needs a datetime with a time zone, or seconds")
        self.until = until


class Cancelled(BaseException):
    """Raised inside a running handler when its job is cancelled; clean up and let it pass."""
