"""What can go wrong, as types: each says what happened, what to do, and how a command exits."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """Exit codes of both programs; systemd and scripts know them."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNAVAILABLE = 69
    INTERNAL = 70
    TRY_LATER = 75
    NOT_ALLOWED = 77
    CONFIG = 78
    TIMED_OUT = 124


class RedriveError(Exception):
    """One sentence about what happened, and a hint about what to do next."""

    exit_code: Exit = Exit.FAILED
    code: str = "failed"
    order: int | None = None  # of several in one request, the one it is about; from 0

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message}; {self.hint}" if self.hint else self.message


class UsageProblem(RedriveError):
    """The request itself makes no sense, whatever there is: a bad filter, a wrong type."""

    exit_code = Exit.USAGE
    code = "usage"


class NotFound(RedriveError):
    """Nothing has that id or name, be it a job, a task or a step."""

    code = "not_found"


class WrongState(RedriveError):
    """The thing exists, but not in a state in which this can be done to it."""

    code = "wrong_state"


class TryLater(RedriveError):
    """Refused now, allowed later: a cooldown, a store that is out of space or busy."""

    exit_code = Exit.TRY_LATER
    code = "try_later"

    def __init__(self, message: str, *, hint: str = "", retry_after: float | None = None) -> None:
        super().__init__(message, hint=hint)
        self.retry_after = retry_after


class NotAllowed(RedriveError):
    """Refused for good: a permanent failure without force, a cap, a role."""

    exit_code = Exit.NOT_ALLOWED
    code = "not_allowed"


class PartialResults(NotAllowed):
    """It would throw away results that a person may want to keep: ask, then use force."""

    code = "partial_results"


class DoneBefore(RedriveError):
    """The same request was carried out by the daemon before this one; its answer is gone."""

    code = "done_before"


class DaemonUnreachable(RedriveError):
    """No daemon answers."""

    exit_code = Exit.UNAVAILABLE
    code = "unreachable"


class ProtocolMismatch(RedriveError):
    """The other side speaks another version."""

    exit_code = Exit.UNAVAILABLE
    code = "version"


class AlreadyRunning(RedriveError):
    """Another daemon holds this state directory."""

    exit_code = Exit.UNAVAILABLE
    code = "already_running"


class ConfigProblem(RedriveError):
    """The config cannot be used; the message names every place that is wrong."""

    exit_code = Exit.CONFIG
    code = "config"
