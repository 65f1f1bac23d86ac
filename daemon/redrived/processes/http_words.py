"""What kept a call from being made, in words: HTTP libraries wrap its cause, and often say nothing."""

from __future__ import annotations

import os
import ssl
from collections.abc import Iterator
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


def reason_of(error: BaseException) -> str:
    """In the words of the system's own error, when there is one; else in those of the library."""
    causes = [words for cause in _causes(error) if (words := _of_the_system(cause))]
    return causes[-1] if causes else str(error) or type(error).__name__


def not_connected(error: httpx.TransportError) -> str:
    """The same, with the address that did not let us connect: a name may have several."""
    return f"{reason_of(error)}: {error.request.url.netloc.decode()}"


def _causes(error: BaseException) -> Iterator[BaseException]:
    """From the outside to the inside."""
    cause: BaseException | None = error
    while cause is not None:
        yield cause
        cause = cause.__cause__ or cause.__context__


def _of_the_system(error: BaseException) -> str:
    if not isinstance(error, OSError) or error.errno is None:
        return ""
    if isinstance(error, ssl.SSLError) or error.errno <= 0:
        return str(error)
    words = os.strerror(error.errno)  # asyncio has put words of its own in its place
    return words[:1].lower() + words[1:]
