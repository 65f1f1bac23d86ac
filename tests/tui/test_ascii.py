"""`--ascii`: nothing of ours is drawn with anything but plain characters."""

from __future__ import annotations

import pytest
from rich.cells import cell_len

from redrive_tui.ascii import TABLE
from redrive_tui.formatting import Look
from support.stage import on_stage

PLACES = {
    **{screen: screen for screen in "12345678"},
    "a job": "2 enter",
    "output": "2 l",
    "output, cut and wrapped": "2 l w",
    "an error": "2 enter ] ] ]",
    "batches": "4 ]",
    "dead by node": "3 ] ] ]",
    "marks": "2 space v",
    "a filter": "2 slash",
    "a dialog": "2 K",
    "a redrive": "3 r",
    "a choice": "2 s",
    "a page": "2 x",
    "help": "question_mark",
    "my commands": "2 h o",
    "commands": "colon",
    "a search": "8 slash",
    "a toast": "2 h",
    "a zoomed pane": "plus",
}


@pytest.mark.parametrize("size", [(120, 30), (60, 16)])
@pytest.mark.parametrize("keys", PLACES.values(), ids=PLACES.keys())
async def test_every_place_is_drawn_in_plain_characters(keys: str, size: tuple[int, int]) -> None:
    async with on_stage(size=size, look=Look(ascii=True)) as stage:
        await stage.press(*keys.split())
        strange = {letter for letter in stage.text if not letter.isascii()}
        assert not strange, "\n".join(stage.grid)


def test_plain_characters_are_as_wide_as_what_they_stand_for() -> None:
    for glyph, plain in TABLE.items():
        assert cell_len(chr(glyph)) == cell_len(str(plain)), chr(glyph)
