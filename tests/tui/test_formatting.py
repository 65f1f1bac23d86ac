"""What people read: states, times, numbers, bars."""

from __future__ import annotations

import time
import unicodedata
from zoneinfo import ZoneInfo

import pytest

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.models import Job
from redrive_tui.formatting import (
    ASCII_GLYPHS,
    DAY,
    GLYPHS,
    Look,
    ago,
    apart,
    count,
    duration,
    fit,
    per_minute,
    plain_text,
    size,
    state_word,
    until,
    width_of,
    wrapped,
)
from support.clock import START

LOOK = Look()


def job(**changes: object) -> Job:
    return Job(id=1, task="t", queue="q", **changes)  # type: ignore[arg-type]


def test_every_state_is_a_glyph_and_a_word_of_its_own() -> None:
    assert GLYPHS.keys() == ASCII_GLYPHS.keys()
    assert len(set(GLYPHS.values())) == len(set(ASCII_GLYPHS.values())) == len(GLYPHS)


def test_no_glyph_changes_its_width_with_the_locale() -> None:
    assert {unicodedata.east_asian_width(glyph) for glyph in GLYPHS.values()} == {"N"}


def test_words_on_screen_are_those_of_an_operator() -> None:
    assert state_word(job(), START) == "queued"
    assert state_word(job(available_at=START + SECOND), START) == "scheduled"
    assert state_word(job(state=JobState.LEASED), START) == "running"
    assert state_word(job(state=JobState.RETRY), START) == "retrying"
    assert state_word(job(state=JobState.RETRY, held=True), START) == "held"
    assert state_word(job(state=JobState.DEAD), START) == "dead"


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [
        (0.94, "0.9s"),
        (41, "41s"),
        (59.7, "1m00s"),
        (252, "4m12s"),
        (3780, "1h03m"),
        (273_600, "3d04h"),
        (-5, "0.0s"),
    ],
)
def test_a_duration_has_at_most_two_units(seconds: float, shown: str) -> None:
    assert duration(seconds) == shown


def test_relative_times_say_which_side_of_now_they_are_on() -> None:
    assert ago(START - 120 * SECOND, START) == "2m ago"
    assert ago(START + 120 * SECOND, START) == "in 2m00s"
    assert until(START + 41 * SECOND, START) == "in 41s"
    assert until(START - SECOND, START) == "now"


def test_absolute_times_name_their_zone() -> None:
    look = Look(zone=ZoneInfo("Europe/Berlin"))

    assert look.absolute(START) == "2026-09-21 16:13:20 CEST"
    assert LOOK.absolute(START) == "2026-09-21 14:13:20 UTC"


def test_a_moment_carries_as_much_date_as_it_needs() -> None:
    day = 86_400 * SECOND
    shown = [LOOK.moment(START - days * day, START) for days in (0, 1, 30, 400)]

    assert shown == ["14:13:20", "Sun 14:13", "22 Aug 14:13", "17 Aug 2025"]


def test_the_exact_time_of_another_day_tells_the_day_in_as_many_cells() -> None:
    day = 86_400 * SECOND
    shown = [LOOK.time_exact(START - days * day, START) for days in (0, 1, 400)]

    assert shown == ["14:13:20.000", "20 Sep 14:13", "17 Aug  2025"]


def test_numbers_that_are_estimates_say_so() -> None:
    assert count(12_431) == "12,431"
    assert count(12_431, exact=False) == "≈12,431"


def test_sizes_and_rates_stay_short() -> None:
    assert [size(n) for n in (512, 1024, 2_254_857_830, 999)] == ["512B", "1.0K", "2.1G", "999B"]
    assert [per_minute(rate) for rate in (0, 2.4, 41, 1900)] == [
        "0/min",
        "2.4/min",
        "41/min",
        "1.9k/min",
    ]


def test_a_sparkline_shows_what_is_not_known_as_such() -> None:
    assert LOOK.sparkline([None, 0, 5, 10], 5) == "··▁▄▇"
    assert Look(ascii=True).sparkline([None, 0, 10], 3) == " .#"


def test_a_bar_is_as_full_as_it_should_be() -> None:
    assert plain_text(LOOK.bar(0.5, 6)) == "▰▰▰▱▱▱"
    assert plain_text(LOOK.bar(7.0, 3)) == "▰▰▰"
    assert plain_text(Look(ascii=True).bar(0.5, 4)) == "##.."


def test_a_length_to_scale_is_never_nothing() -> None:
    assert LOOK.span_bar(1.0, 8) == "━" * 8
    assert LOOK.span_bar(0.0001, 8) == "╸"


def test_a_cell_is_exactly_as_wide_as_it_was_told() -> None:
    for text in ("short", "日本語の長いテキスト", "e\u0301\u0301longer than that"):
        for width in (1, 2, 5, 30):
            assert width_of(fit([(text, "")], width)) == width


def test_a_cut_cell_ends_in_the_mark_of_being_cut() -> None:
    assert plain_text(fit([("abc", ""), ("def", "")], 5)) == "abcd›"
    assert plain_text(fit([("abc", "")], 5, right=True)) == "  abc"


def test_two_ends_of_a_line_stay_apart_and_the_right_gives_way() -> None:
    assert plain_text(apart([("a", "")], [("z", "")], 5)) == "a   z"
    assert plain_text(apart([("abcdef", "")], [("z", "")], 5)) == "abcd›"


def test_what_is_too_long_goes_on_under_where_it_began() -> None:
    line = [("next  ", "title"), ("`redrive requeue 12` gives it another life", "accent")]
    assert [plain_text(part).rstrip() for part in wrapped(line, 30)] == [
        "next  `redrive requeue 12`",
        "      gives it another life",
    ]


def test_what_fits_stays_one_line() -> None:
    short = [("next  ", "title"), ("wait", "accent")]
    assert wrapped(short, 30) == [short]


def test_what_begins_far_to_the_right_goes_on_below() -> None:
    crowded = [("a name that takes the room  ", "title"), ("and a text", "text")]
    assert [plain_text(part).rstrip() for part in wrapped(crowded, 30)] == [
        "a name that takes the room",
        "    and a text",
    ]


def test_without_a_zone_times_are_those_of_this_machine_as_they_were_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        look = Look(zone=None)
        assert look.absolute(START) == "2026-09-21 16:13:20 CEST"
        assert look.absolute(START + 90 * DAY * SECOND) == "2026-12-20 15:13:20 CET"
        assert look.zone_name(START) == "CEST"
    finally:
        monkeypatch.undo()
        time.tzset()
