"""Other keys are welcome, nonsense is not."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.errors import ConfigProblem
from redrive_tui import keymap
from redrive_tui.keys import KEYS, SCREENS, every_key, keys_of

READLINE_REFLEXES = {"ctrl+d", "ctrl+k", "ctrl+w", "ctrl+s", "ctrl+z"}


def test_the_keys_as_delivered_have_no_clash() -> None:
    assert list(keymap.problems({})) == []


def test_nothing_destructive_is_on_a_small_letter_or_a_reflex_of_the_shell() -> None:
    for key in every_key().values():
        if key.destructive:
            assert key.keys.isupper()
            assert not READLINE_REFLEXES & set(key.keys.split(","))


def test_every_action_has_a_name_of_its_own() -> None:
    names = [key.id for keys in KEYS.values() for key in keys]

    assert len(names) == len(set(names))


def test_every_screen_has_help_and_a_way_back() -> None:
    for screen in SCREENS:
        assert {"app.help", "go.back", "app.palette"} <= {key.id for key in keys_of(screen)}


def test_a_keymap_is_read_with_its_keys_named_as_textual_does(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text('job.cancel = "ctrl+x"\n"app.help" = "f1,?"\n')

    assert keymap.load(file) == {"job.cancel": "ctrl+x", "app.help": "f1,question_mark"}


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ('job.explode = "x"', "job.explode: no such action"),
        ('job.cancel = "ctrl+alt+banana"', "no terminal sends the key 'ctrl+alt+banana'"),
        ('job.kill = "i"', "needs a capital letter, not 'i'"),
        ('job.cancel = "h"', "the key 'h' already means job.cancel"),
        ('job.cancel = "tab"', "the key 'tab' already means next pane"),
    ],
)
def test_a_keymap_that_makes_no_sense_is_refused_whole(
    tmp_path: Path, line: str, told: str
) -> None:
    file = tmp_path / "keys.toml"
    file.write_text(f'app.log = "O"\n{line}\n')

    with pytest.raises(ConfigProblem) as refused:
        keymap.load(file)

    assert told in refused.value.message
    assert str(file) in refused.value.message


def test_two_actions_may_swap_their_keys() -> None:
    assert list(keymap.problems({"job.hold": "c", "job.cancel": "h"})) == []


def test_a_file_that_is_no_toml_is_a_config_problem(tmp_path: Path) -> None:
    file = tmp_path / "keys.toml"
    file.write_text("= =")

    with pytest.raises(ConfigProblem, match="cannot be read as a keymap"):
        keymap.load(file)
