"""The palette in the hands of somebody who types faster than it answers."""

from __future__ import annotations

import asyncio

import pytest
from textual.command import CommandInput, CommandList, CommandPalette, Hit, Hits
from textual.widgets import Input

from redrive_tui.palette import Commands
from support.stage import on_stage


async def test_a_letter_that_comes_after_the_palette_was_left_changes_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def nothing(_: Commands) -> Hits:
        return
        yield

    monkeypatch.setattr(Commands, "discover", nothing)
    async with on_stage() as stage:
        await stage.press("colon")
        palette = stage.console.screen
        assert isinstance(palette, CommandPalette)

        async def search_until_it_is_gone(_: Commands, query: str) -> Hits:
            while palette.query(CommandList):
                await asyncio.sleep(0)
            yield Hit(1.0, query, lambda: None, text=query)

        monkeypatch.setattr(Commands, "search", search_until_it_is_gone)
        palette.post_message(Input.Changed(palette.query_one(CommandInput), "done"))
        palette.dismiss()
        await stage.settle()

        assert stage.console.fault is None
        assert stage.console.pane.context == "overview"
