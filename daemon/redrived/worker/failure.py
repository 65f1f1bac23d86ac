"""An exception as data: names along its classes, a message, a traceback, all of bounded size."""

from __future__ import annotations

import os
import traceback
from types import TracebackType
from typing import Any

MESSAGE_AT_MOST = 4096
TRACEBACK_AT_MOST = 16 * 1024

# Folders whose frames come before the handler's: this one, and the event loop's.
_CALLERS = (
    os.path.join(os.path.dirname(os.path.abspath(__file__)), ""),
    os.path.join(os.path.dirname(os.__file__), "asyncio", ""),
)


def describe(error: BaseException) -> dict[str, Any]:
    return {
        "names": [_name(cls) for cls in type(error).__mro__ if cls is not object],
        "message": message_of(error),
        "traceback": _traceback_of(error),
    }


def message_of(error: BaseException) -> str:
    if isinstance(error, SystemExit) and isinstance(error.code, int):
        return f"sys.exit({error.code})"  # the number alone would say nothing
    try:
        return str(error)[:MESSAGE_AT_MOST]
    except Exception as broken:  # noqa: BLE001 - it is the application's code
        return f"<{type(error).__name__} that cannot say what it is: {type(broken).__name__}>"


def _name(cls: type) -> str:
    if cls.__module__ == "builtins":
        return cls.__qualname__
    return f"{cls.__module__}.{cls.__qualname__}"


def _traceback_of(error: BaseException) -> str:
    frames = _from_handler(error.__traceback__)
    try:
        text = "".join(traceback.format_exception(type(error), error, frames))
    except Exception as broken:  # noqa: BLE001 - so is what a traceback asks
        text = f"<no traceback: {message_of(broken)}>"
    if len(text) <= TRACEBACK_AT_MOST:
        return text
    # The last lines say the most, so the middle goes.
    return text[:1024] + "\n  ...\n" + text[-(TRACEBACK_AT_MOST - 1024) :]


def _from_handler(frames: TracebackType | None) -> TracebackType | None:
    """The traceback without what called the handler: of no interest to its author."""
    while frames is not None and frames.tb_frame.f_code.co_filename.startswith(_CALLERS):
        frames = frames.tb_next
    return frames
