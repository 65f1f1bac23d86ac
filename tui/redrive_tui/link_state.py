"""How the console stands with its daemon, in words; and whether it may ask for changes."""

from __future__ import annotations

from typing import Literal

from redrive.models import Record
from redrive_tui.formatting import Span, duration

LAGGING_AFTER = 2.5  # seconds without a word; older than this, nothing may be changed

LinkWord = Literal["connecting", "live", "lost", "restarted", "version"]


class LinkState(Record, frozen=True, kw_only=True):
    word: LinkWord = "connecting"
    heard: float | None = None  # monotonic seconds of the last word from the daemon
    since: float = 0.0  # when `word` became true, the same clock
    retries: int = 0  # tries since it was lost, all of them in vain
    detail: str = ""  # what the last try answered, or which versions differ

    def is_fresh(self, now: float) -> bool:
        """Whether what is on screen may be taken for true."""
        return self.word == "live" and self.age(now) <= LAGGING_AFTER

    def age(self, now: float) -> float:
        return max(0.0, now - (self.since if self.heard is None else self.heard))


def words(link: LinkState, now: float) -> Span:
    """What stands at the top right."""
    age = link.age(now)
    match link.word:
        case "live" if link.is_fresh(now):
            return f"live {age:.1f}s", "good"
        case "live":
            return f"lagging {duration(age)}", "warning"
        case "lost":
            tried = f", retry {link.retries}" if link.retries else ""
            return f"lost {duration(age)}{tried}", "error"
        case "restarted":
            return "daemon restarted, re-reading", "warning"
        case "version":
            return "version differs", "error"
        case "connecting":
            return "connecting", "warning"


def refusal(link: LinkState, now: float) -> str | None:
    """Why nothing may be changed right now, if so."""
    if link.is_fresh(now):
        return None
    text, _ = words(link, now)
    return f"nothing was sent: what you see may be out of date ({text})"
