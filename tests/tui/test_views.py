"""Filters with names: saved from the palette, found there again."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.errors import ConfigProblem
from redrive_tui.views import Views, views_path
from support.daemon import soon
from support.stage import Stage, on_stage


async def command(stage: Stage, text: str) -> None:
    await stage.press("colon")
    await stage.type(text)
    await soon(lambda: stage.text.count(text) > 1, "a command found")
    await stage.press("enter")
    await soon(lambda: not stage.console.screen.is_modal, "the palette gone")
    await stage.settle()


def test_a_view_is_there_for_the_next_console(tmp_path: Path) -> None:
    path = tmp_path / "redrive" / "views.json"
    views = Views(path)
    views.save("night", "state:dead queue:mail")
    views.save("late", "age>1h")
    views.forget("late")

    assert Views(path).filters == {"night": "state:dead queue:mail"}


def test_views_that_cannot_be_read_are_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "views.json"
    path.write_text("{broken")
    with pytest.raises(ConfigProblem, match="mend that file, or remove it"):
        Views(path)


def test_views_are_kept_where_an_operators_own_settings_are() -> None:
    assert views_path({"XDG_CONFIG_HOME": "/x"}) == Path("/x/redrive/views.json")


async def test_the_filter_in_force_is_saved_under_a_name_and_comes_back_by_it() -> None:
    views = Views()
    async with on_stage(views=views) as stage:
        await stage.press("2", "slash")
        await stage.type("state:dead queue:reports")
        await stage.press("enter")
        await command(stage, "view broken reports")
        assert views.filters == {"broken reports": "state:dead queue:reports"}
        assert stage.toasts[-1] == "view broken reports saved"

        await stage.press("escape", "1")
        await command(stage, "view broken")
        await soon(lambda: "/ state:dead queue:reports" in stage.text, "the jobs of the view")

        await command(stage, "forget view broken")
        assert views.filters == {}


async def test_a_view_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    views = Views(tmp_path / "redrive" / "views.json")
    (tmp_path / "redrive").write_text("a file where a folder should be")
    async with on_stage(views=views) as stage:
        stage.console.save_view("night", "state:dead")
        assert "the views could not be written" in stage.toasts[-1]
