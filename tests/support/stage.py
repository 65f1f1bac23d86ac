"""A console on a stage: a recorded daemon behind it, a clock that stands still, keys to press."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from textual.pilot import Pilot
from textual.widgets import Input

from redrive_tui.app import Console, Settings
from support import incident
from support.clock import FakeClock
from support.recorded import Recorded

STEADY = 3  # times in a row that the screen is the same
READING = {"read", "pages", "thaw", "acting", "fates", "copy"}


class Stage:
    def __init__(self, console: Console, pilot: Pilot[None], clock: FakeClock) -> None:
        self.console = console
        self.pilot = pilot
        self.clock = clock
        self.source: Recorded = console.source  # type: ignore[assignment]

    async def press(self, *keys: str) -> None:
        for key in keys:
            await self.pilot.press(key)
            await self.settle()

    async def type(self, text: str) -> None:
        """Into the field that has the keyboard, all at once."""
        field = self.console.focused
        assert isinstance(field, Input)
        field.insert_text_at_cursor(text)
        await self.settle()

    async def pass_time(self, seconds: float) -> None:
        """The daemon goes on telling its status meanwhile."""
        self.clock.move(seconds)
        self.console.mirror.heard()
        await self.settle()

    async def settle(self) -> None:
        """Until everything that was asked for has been answered, and painting changes nothing."""
        seen: list[list[str]] = []
        while len(seen) < STEADY or any(grid != seen[-1] for grid in seen[-STEADY:]):
            while any(self._is_reading()) and not self.console.screen.is_modal:
                await self.pilot.pause()
            self.console.tick()
            await self.pilot.pause()
            seen.append(self.grid)

    def _is_reading(self) -> list[bool]:
        workers = self.console.workers
        return [worker.is_running for worker in workers if worker.group in READING]

    @property
    def grid(self) -> list[str]:
        """The lines of the screen as text."""
        strips = self.console.screen._compositor.render_strips()
        return [strip.text.rstrip() for strip in strips]

    @property
    def text(self) -> str:
        return "\n".join(self.grid)

    def line_with(self, words: str) -> str:
        """The first line that has these words."""
        return next((line for line in self.grid if words in line), "")

    @property
    def toasts(self) -> list[str]:
        return [text for _, text in self.console.commands_log.notes]


@asynccontextmanager
async def on_stage(
    source: Recorded | None = None, size: tuple[int, int] = (120, 30), **settings: Any
) -> AsyncIterator[Stage]:
    clock = FakeClock()
    console = Console(source or incident.source(), Settings(**settings), clock)
    async with console.run_test(size=size, notifications=True) as pilot:
        stage = Stage(console, pilot, clock)
        await stage.settle()
        yield stage
        console.exit()  # or it would look once more while its screens are taken away
