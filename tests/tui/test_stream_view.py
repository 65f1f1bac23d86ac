"""Lines that keep coming, wrapped, when the oldest leave for them."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import pytest

from redrive.models import Event
from redrive_tui.event_ring import EVENTS_KEPT
from redrive_tui.formatting import Line, Look
from redrive_tui.reading import event_line
from redrive_tui.screens import events
from redrive_tui.screens.events import EventsPane
from support import incident
from support.stage import Stage, on_stage

SCREEN = (100, 30)


def happen(stage: Stage, number: int) -> None:
    """So many events whose lines need three rows each."""
    first = stage.console.mirror.seq + 1
    stage.console.mirror.apply(
        Event(seq=seq, at=incident.NOW, type="note", data={"said": f"<{seq}> {'long ' * 28}"})
        for seq in range(first, first + number)
    )


@asynccontextmanager
async def a_full_wrapped_log() -> AsyncGenerator[tuple[Stage, EventsPane]]:
    async with on_stage(size=SCREEN) as stage:
        await stage.press("8", "w")
        happen(stage, EVENTS_KEPT)
        await stage.settle()
        pane = stage.console.pane
        assert isinstance(pane, EventsPane)
        yield stage, pane


async def test_more_lines_at_once_than_fit_are_followed_to_their_end() -> None:
    async with on_stage(size=SCREEN) as stage:
        await stage.press("8")
        happen(stage, 2 * SCREEN[1])
        await stage.settle()

        assert f"<{stage.console.mirror.seq}>" in stage.text


async def test_of_a_full_log_only_what_is_new_is_wrapped(monkeypatch: pytest.MonkeyPatch) -> None:
    async with a_full_wrapped_log() as (stage, pane):
        drawn: list[int] = []

        def counted(event: Event, now: int, look: Look) -> Line:
            drawn.append(event.seq)
            return event_line(event, now, look)

        monkeypatch.setattr(events, "event_line", counted)
        happen(stage, 5)
        pane.show()

        assert len(pane.stream.items) == EVENTS_KEPT
        assert len(drawn) < 10 * SCREEN[1]


async def test_what_is_read_stays_where_it_is_while_the_oldest_leave() -> None:
    async with a_full_wrapped_log() as (stage, _):
        await stage.press("pageup", "pageup")
        read = [line for line in stage.grid if "<" in line]
        happen(stage, 7)
        await stage.settle()

        assert [line for line in stage.grid if "<" in line] == read
