"""Every screen in the states that have no picture of their own: narrow, without colour, cut off."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from redrive_tui.palettes import MONO
from redrive_tui.widgets.table import GUTTER, LEAST_WIDTH, Table
from support.stage import on_stage

# Keys that lead to a screen, and what has to be read there whatever happens.
SCREENS = {
    "overview": ("1", "398 dead in reports"),
    "jobs": ("2", "240"),
    "dead": ("3", "398"),
    "runs": ("4", "► running"),
    "batches": ("4 ]", "night"),
    "queues": ("5", "imports"),
    "schedules": ("6", "nightly-rollup"),
    "nodes": ("7", "w3"),
    "events": ("8", "step_retry"),
    "job": ("2 enter", "send_invoice"),
    "output": ("2 l", "loading template"),
}


@pytest.mark.parametrize(("keys", "words"), SCREENS.values(), ids=SCREENS.keys())
@pytest.mark.parametrize("size", [(60, 16), (120, 30)], ids=["narrow", "wide"])
async def test_a_screen_says_what_it_has_to_say(
    size: tuple[int, int], keys: str, words: str
) -> None:
    async with on_stage(size=size, theme=MONO) as stage:
        await stage.press(*keys.split())
        assert words in stage.text
        assert max(cell_len(line) for line in stage.grid) <= size[0]

        stage.console.mirror.relink("lost", retries=3, detail="nobody listens there")
        stage.source.lost = True
        stage.clock.move(12)
        await stage.settle()
        assert "lost 12s, retry 3" in stage.grid[0]
        assert "cannot reach" in stage.text
        assert words in stage.text


async def test_every_column_that_is_shown_is_shown_whole() -> None:
    async with on_stage() as stage:
        await stage.press(*"12345678")
        for table in stage.console.query(Table):
            for room in range(58, 200):  # beside the margins of a terminal of 60 columns
                shown = [column for column in table.columns if room >= column.from_width]
                widths = [column.width or LEAST_WIDTH for column in shown]
                assert GUTTER + sum(widths) + 2 * (len(widths) - 1) <= room, (table, room)
