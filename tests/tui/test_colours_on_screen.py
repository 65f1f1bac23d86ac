"""What reaches the terminal, theme by theme: legible, and without colour when none is wanted."""

from __future__ import annotations

import pytest
from rich.segment import Segment

from redrive_tui.formatting import Look
from redrive_tui.palettes import PALETTES
from redrive_tui.theme import contrast
from support.stage import Stage, on_stage


def segments(stage: Stage) -> list[Segment]:
    strips = stage.console.screen._compositor.render_strips()
    return [segment for strip in strips for segment in strip]


@pytest.mark.parametrize("theme", [name for name in PALETTES if name != "mono"])
async def test_every_state_is_legible_as_it_is_painted(theme: str) -> None:
    async with on_stage(theme=theme, size=(120, 34)) as stage:
        await stage.press("2")
        words = ["queued", "running", "scheduled", "retrying", "done", "dead", "cancelled", "held"]
        painted = {
            word: segment.style
            for segment in segments(stage)
            for word in words
            if segment.text.strip().endswith(f" {word}")
        }

        assert painted.keys() == set(words)
        for word, style in painted.items():
            assert style is not None
            assert style.color is not None
            assert style.bgcolor is not None
            assert contrast(style.color.name, style.bgcolor.name) >= 4.5, word


async def test_under_no_color_nothing_but_attributes_goes_out(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    async with on_stage(theme="light") as stage:
        assert stage.console.theme == "mono"
        for keys in (["2"], ["3", "r"], ["escape", "question_mark"], ["escape", "colon"]):
            await stage.press(*keys)
            for segment in segments(stage):
                if segment.style is not None:
                    for colour in (segment.style.color, segment.style.bgcolor):
                        assert colour is None or colour.is_default


async def test_without_colour_states_still_differ() -> None:
    async with on_stage(theme="mono", size=(120, 34)) as stage:
        await stage.press("2")
        for state in ("✗ dead", "✓ done", "↻ retrying", "► running", "◌ held", "▸ queued"):
            assert state in stage.text


async def test_a_terminal_without_unicode_gets_ascii() -> None:
    async with on_stage(look=Look(ascii=True)) as stage:
        await stage.press("2")
        assert "X dead" in stage.text
        assert "~ retrying" in stage.text


async def test_another_theme_is_worn_at_once() -> None:
    async with on_stage() as stage:
        stage.console.theme = "light"
        await stage.settle()
        grounds = {
            segment.style.bgcolor.name
            for segment in segments(stage)
            if segment.style is not None and segment.style.bgcolor is not None
        }
        assert PALETTES["light"].background in grounds
        assert PALETTES["dark"].background not in grounds
