"""Legible in every theme, and without any colour at all."""

from __future__ import annotations

from typing import get_args, get_type_hints

import pytest

from redrive.config import sections
from redrive.config.checks import COLOURS
from redrive.pipelines.states import StepState
from redrive_tui.formatting import GLYPHS
from redrive_tui.palettes import MONO, PALETTES
from redrive_tui.theme import (
    contrast,
    environment_style,
    style,
)

LEGIBLE = 4.5
DECORATION = {"rule"}  # lines and empty bars: nothing is read from them
COLOURED = [name for name in PALETTES if name != MONO]


@pytest.mark.parametrize("theme", COLOURED)
def test_every_role_is_legible_on_every_background_it_can_meet(theme: str) -> None:
    palette = PALETTES[theme]
    for role in palette.roles.keys() - DECORATION:
        look = style(theme, role)
        assert look.color is not None
        grounds = (
            [look.bgcolor.name]
            if look.bgcolor
            else [
                palette.background,
                palette.surface,
                palette.cursor,
            ]
        )
        for ground in grounds:
            assert contrast(look.color.name, ground) >= LEGIBLE, (role, ground)


@pytest.mark.parametrize("colour", [*COLOURS, "#767676", "#no hex", "no such colour"])
def test_the_name_of_the_environment_is_legible_in_its_colour(colour: str) -> None:
    look = environment_style("dark", colour)

    assert look.color is not None
    assert look.bgcolor is not None
    assert contrast(look.color.name, look.bgcolor.name) >= LEGIBLE


def test_an_environment_is_known_by_every_colour_that_a_config_may_give_it() -> None:
    grounds = {colour: environment_style("dark", colour).bgcolor for colour in COLOURS}

    assert grounds["gray"] == grounds["grey"]
    assert len({str(ground) for ground in grounds.values()}) == len(COLOURS) - 1
    ground = environment_style("dark", "#A0522d").bgcolor
    assert ground is not None
    assert ground.get_truecolor() == (0xA0, 0x52, 0x2D)


def test_every_theme_knows_every_role() -> None:
    roles = {frozenset(palette.roles) for palette in PALETTES.values()}

    assert len(roles) == 1
    assert set(GLYPHS) <= next(iter(roles))


def test_mono_uses_no_colour() -> None:
    for role in PALETTES[MONO].roles:
        assert style(MONO, role).color is None
        assert style(MONO, role).bgcolor is None
    assert environment_style(MONO, "red").color is None


def test_contrast_is_that_of_the_standard() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#767676", "#ffffff") == pytest.approx(4.54, abs=0.01)


@pytest.mark.parametrize("theme", PALETTES)
@pytest.mark.parametrize("word", [*StepState, "a-state-of-tomorrow"])
def test_a_word_that_no_palette_knows_is_shown_all_the_same(theme: str, word: str) -> None:
    known = word in PALETTES[theme].roles
    assert style(theme, word) == style(theme, word if known else "dim")


def test_the_config_names_the_palettes_there_are() -> None:
    assert get_args(get_type_hints(sections.Console)["theme"]) == tuple(PALETTES)
