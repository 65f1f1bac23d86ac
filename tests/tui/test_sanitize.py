"""Nothing that a terminal would obey gets through, and nothing that a person should read is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive_tui.sanitize import CUT, LIMIT, clean, clean_lines, coloured

HOSTILE = {
    "sets the title": "\x1b]0;owned\x07after",
    "fills the clipboard": "\x1b]52;c;b3duZWQ=\x07after",
    "clears the screen": "\x1b[2J\x1b[Hafter",
    "8-bit CSI": "\x9b2Jafter",
    "8-bit OSC": "\x9d0;owned\x9cafter",
    "DCS": "\x1bP1$r0m\x1b\\after",
    "APC": "\x1b_payload\x1b\\after",
    "resets the terminal": "\x1bcafter",
    "bells and backspaces": "\x07\x08\x08\x0e\x0fafter",
    "carriage return": "\rafter",
    "delete": "\x7f\x7fafter",
    "nested": "\x1b]0;a\x1b[2J\x07after",
}


def is_quiet(text: str) -> bool:
    return all(ord(each) >= 0x20 and not 0x7F <= ord(each) <= 0x9F for each in text)


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_a_hostile_text_loses_its_sequences_and_keeps_its_words(text: str) -> None:
    assert is_quiet(clean(text))
    assert clean(text).endswith("after")


@pytest.mark.parametrize("opener", ["\x1b]", "\x9d", "\x1bP", "\x1b_", "\x1b^", "\x1bX"])
def test_a_sequence_that_never_ends_hides_nothing(opener: str) -> None:
    shown = clean(f"{opener}0;the disk is full")

    assert is_quiet(shown)
    assert "the disk is full" in shown


def test_text_that_turns_its_direction_shows_where() -> None:
    assert clean("safe\u202etxt.exe") == "safe<U+202E>txt.exe"
    assert clean("\u2066a\u2069") == "<U+2066>a<U+2069>"


def test_half_a_surrogate_pair_can_be_written() -> None:
    assert clean("a\ud800b").encode() == b"a<U+D800>b"


def test_marks_piled_on_a_letter_are_bounded() -> None:
    assert len(clean("a" + "\u0301" * 500)) < 10


def test_a_line_of_a_megabyte_is_cut_and_says_so() -> None:
    shown = clean("x" * 1_000_000)

    assert len(shown) == LIMIT
    assert shown.endswith(CUT)


def test_line_ends_and_tabs_become_spaces_in_one_line() -> None:
    assert clean("one\ntwo\r\nthree\tfour") == "one two three   four"


def test_lines_stay_lines_where_they_mean_something() -> None:
    assert clean_lines("one\n\x1b[31mtwo\x1b[0m\n") == ["one", "two"]


def test_ordinary_text_of_any_language_is_left_alone() -> None:
    for text in ("naïve café", "日本語のテスト", "привет", "שלום", "[/red] [bold]"):
        assert clean(text) == text


def test_colours_of_output_become_styles_not_bytes() -> None:
    assert coloured("\x1b[1;31mERROR\x1b[0m ok \x1b[38;5;208morange\x1b[m") == [
        ("ERROR", "bold red"),
        (" ok ", ""),
        ("orange", "color(208)"),
    ]


def test_true_colour_and_background_are_understood() -> None:
    assert coloured("\x1b[38;2;1;2;3;44mx") == [("x", "#010203 on blue")]


def test_a_broken_colour_is_ignored() -> None:
    assert coloured("\x1b[38;5mx\x1b[999999999mz") == [("x", ""), ("z", "")]


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=300))
def test_whatever_comes_in_no_control_character_goes_out(text: str) -> None:
    assert is_quiet(clean(text))
    assert all(is_quiet(piece) for piece, _ in coloured(text))
