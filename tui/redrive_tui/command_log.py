"""Everything asked from this console, with its fate."""

from __future__ import annotations

from collections import deque

from redrive.clock import Instant
from redrive.models import Record
from redrive_tui.wishes import Fate, Wish

KEPT = 1_000  # of what was asked, and of what was said
_OPEN = {"sent", "unknown"}


class Entry(Record, frozen=True, kw_only=True):
    at: Instant
    wish: Wish
    fate: Fate


class CommandLog:
    """Newest last; an entry changes only its fate, and leaves when it has one and is old."""

    def __init__(self) -> None:
        self.version = 0
        self._entries: dict[str, Entry] = {}
        # What was only said: toasts, failures.
        self.notes: deque[tuple[Instant, str]] = deque(maxlen=KEPT)

    @property
    def entries(self) -> list[Entry]:
        return list(self._entries.values())

    @property
    def unknown(self) -> list[Wish]:
        """What has to be asked about once the daemon answers again."""
        return [entry.wish for entry in self._entries.values() if entry.fate.word == "unknown"]

    def sent(self, wish: Wish, at: Instant) -> None:
        self._entries[wish.key] = Entry(at=at, wish=wish, fate=Fate(word="sent"))
        self._make_room()
        self.version += 1

    def settle(self, key: str, fate: Fate) -> None:
        entry = self._entries[key]
        self._entries[key] = Entry(at=entry.at, wish=entry.wish, fate=fate)
        self.version += 1

    def note(self, text: str, at: Instant) -> None:
        self.notes.append((at, text))
        self.version += 1

    def _make_room(self) -> None:
        settled = [key for key, entry in self._entries.items() if entry.fate.word not in _OPEN]
        for key in settled[: max(0, len(self._entries) - KEPT)]:
            del self._entries[key]
