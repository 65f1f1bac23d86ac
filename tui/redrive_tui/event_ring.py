"""The newest events, kept small: there are thousands, and a screen shows forty of them.

An event is kept in the bytes it can travel in, a quarter of what the record takes, and made a
record again when somebody looks. So a console that is open for days stays as it was.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice

import msgspec

from redrive.models import Event, Record
from redrive.protocol.codec import encode

EVENTS_KEPT = 10_000

_event = msgspec.msgpack.Decoder(Event)


class Gap(Record, frozen=True, kw_only=True):
    """Events that were lost on the way, because this console was too slow."""

    missing: int
    before: int  # the seq that came next


Kept = bytes | Gap


def opened(kept: Kept) -> Event | Gap:
    """What was kept, to look at."""
    return kept if isinstance(kept, Gap) else _event.decode(kept)


class EventRing:
    """Oldest first; the oldest leave."""

    def __init__(self) -> None:
        self.taken = 0  # ever; `since` an earlier number is what came after it
        self._kept: deque[Kept] = deque(maxlen=EVENTS_KEPT)

    def __len__(self) -> int:
        return len(self._kept)

    def __iter__(self) -> Iterator[Event | Gap]:
        return map(opened, self._kept)

    def take(self, item: Event | Gap) -> None:
        self._kept.append(item if isinstance(item, Gap) else encode(item))
        self.taken += 1

    def since(self, taken: int) -> list[Kept]:
        """What was taken after so many, as far as it is still here."""
        fresh = list(islice(reversed(self._kept), self.taken - taken))
        fresh.reverse()
        return fresh

    def clear(self) -> None:
        self._kept.clear()
