"""What the console keeps of the events: as much as is promised, and no record of any."""

from __future__ import annotations

import gc

from redrive.models import Event
from redrive_tui.event_ring import EVENTS_KEPT, EventRing, Gap, opened
from support import incident
from support.stage import on_stage


def event(seq: int) -> Event:
    data = {"error": {"message": "connection reset by peer"}, "delay": 3.5}
    return Event(seq=seq, at=incident.NOW, type="action_error", job=7, attempt=2, data=data)


def records_in_memory() -> int:
    gc.collect()
    return sum(isinstance(each, Event) for each in gc.get_objects())


def test_what_is_kept_reads_as_it_was_told() -> None:
    ring = EventRing()
    told: list[Event | Gap] = [event(1), Gap(missing=3, before=5), event(5)]
    for item in told:
        ring.take(item)

    assert list(ring) == told


def test_since_a_look_there_is_what_came_after_it() -> None:
    ring = EventRing()
    ring.take(event(1))
    looked = ring.taken
    ring.take(event(2))
    ring.clear()
    ring.take(event(3))

    assert [opened(kept) for kept in ring.since(looked)] == [event(3)]
    assert ring.since(ring.taken) == []


async def test_a_full_log_on_the_screen_costs_no_records() -> None:
    async with on_stage() as stage:
        await stage.press("8")
        before = records_in_memory()
        first = stage.console.mirror.seq + 1
        stage.console.mirror.apply(event(seq) for seq in range(first, first + EVENTS_KEPT))
        await stage.settle()

        assert f"showing {EVENTS_KEPT:,}" in stage.text
        assert records_in_memory() <= before
