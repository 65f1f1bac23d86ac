"""What is refused, there or here, as the error it is."""

from __future__ import annotations

from redrive import errors
from redrive.errors import DaemonUnreachable, Exit, RedriveError
from redrive.protocol.envelope import Refusal

_TYPES: dict[str, type[RedriveError]] = {
    kind.code: kind
    for kind in vars(errors).values()
    if isinstance(kind, type) and issubclass(kind, RedriveError)
}


class DaemonSilent(DaemonUnreachable):
    """It holds the connection and says nothing: it is blocked, or stopped."""

    what_to_do = "it hangs, or was stopped: its log may say why"


class AnswerLost(DaemonUnreachable):
    """The request went out and no answer came: it was done, or it was not.

    `request` is its id, by which `fate` can be asked.
    """

    code = "answer_lost"
    in_doubt = "look before you ask again: it may have been done"

    def __init__(self, message: str, *, request: str, is_silent: bool = False) -> None:
        super().__init__(message, hint=self.in_doubt)
        self.request = request
        self.is_silent = is_silent  # it took the request, and is still there

    def of_a_question(self, hint: str) -> DaemonUnreachable:
        """The same where nothing is in doubt, for a question changes nothing."""
        return unreachable(self.message, hint, is_silent=self.is_silent)


def unreachable(message: str, hint: str, *, is_silent: bool) -> DaemonUnreachable:
    """The hint is for where nobody is; who is there and silent need not be started."""
    if is_silent:
        return DaemonSilent(message, hint=DaemonSilent.what_to_do)
    return DaemonUnreachable(message, hint=hint)


def error_of(refusal: Refusal) -> RedriveError:
    """An error of the type its code names, or a plain one when the code is new to us."""
    kind = _TYPES.get(refusal.code, RedriveError)
    error = kind(refusal.message, hint=refusal.hint)
    error.code = refusal.code
    error.order = refusal.order
    try:
        error.exit_code = Exit(refusal.exit_code)
    except ValueError:
        pass  # an exit code of a later version; that of the type is near enough
    if isinstance(error, errors.TryLater):
        error.retry_after = refusal.retry_after
    return error
