from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.config.values import (
    RateLimit,
    format_duration,
    format_size,
    parse_duration,
    parse_name,
    parse_rate,
    parse_size,
    quoted,
)


@pytest.mark.parametrize(
    ("written", "seconds"),
    [
        ("30s", 30),
        ("15m", 900),
        ("1h30m", 5400),
        ("2d", 172_800),
        ("1w", 604_800),
        ("500ms", 0.5),
        ("1.5h", 5400),
        ("1m500ms", 60.5),
        ("90", 90),
        ("0s", 0),
        (90, 90),
        (0.25, 0.25),
        (0.1234567, 0.123457),
    ],
)
def test_a_duration_is_read_in_seconds(written: object, seconds: float) -> None:
    assert parse_duration(written) == seconds


@pytest.mark.parametrize(
    "written",
    [
        "", "s", "ms", "5 s", "30m1h", "1h1h", "-5s", "5S", "1e3", "٣s", "1h30", "infs", "9" * 400,
        True, None, [], -1, 4e9, 10**400, float("nan"), float("inf"), "36526d",
    ],
)  # fmt: skip
def test_what_is_no_duration_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="expected"):
        parse_duration(written)


@given(st.floats(min_value=0, max_value=3e9))
def test_a_formatted_duration_is_read_back_as_it_was(seconds: float) -> None:
    seconds = parse_duration(seconds)
    assert parse_duration(format_duration(seconds)) == seconds


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (90, "1m30s"), (0.5, "500ms"), (604_800, "7d"), (1.25, "1s250ms")],
)
def test_a_duration_is_written_as_people_would(seconds: float, text: str) -> None:
    assert format_duration(seconds) == text


@pytest.mark.parametrize(
    ("written", "size"),
    [("1G", 1 << 30), ("512K", 524_288), ("64M", 67_108_864), ("64 MiB", 67_108_864),
     ("1.5k", 1536), ("2TB", 2 << 40), ("4096", 4096), (4096, 4096)],
)  # fmt: skip
def test_a_size_is_read_in_bytes(written: object, size: int) -> None:
    assert parse_size(written) == size


@pytest.mark.parametrize(
    "written", ["", "G", "1X", "-1G", "0", 0, -1, True, 1.5, None, "1" + "0" * 400, 1 << 63]
)
def test_what_is_no_size_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="expected a size"):
        parse_size(written)


@given(st.integers(min_value=1, max_value=(1 << 53) - 1))
def test_a_formatted_size_is_read_back_as_it_was(size: int) -> None:
    assert parse_size(format_size(size)) == size


@pytest.mark.parametrize(
    ("written", "limit"),
    [
        ("100/min", RateLimit(100, 60)),
        ("5/s", RateLimit(5, 1)),
        ("1000/h", RateLimit(1000, 3600)),
        ("2 / day", RateLimit(2, 86_400)),
    ],
)
def test_a_rate_is_a_count_in_a_time(written: str, limit: RateLimit) -> None:
    assert parse_rate(written) == limit


@pytest.mark.parametrize("written", ["", "5", "0/s", "-1/s", "5/fortnight", "/s", 5, None, "1.5/s"])
def test_what_is_no_rate_is_refused(written: object) -> None:
    with pytest.raises(ValueError, match="expected a rate"):
        parse_rate(written)


@pytest.mark.parametrize("name", ["a", "parse", "a.b-c_d:e", "7", "x" * 100])
def test_a_name_may_hold_letters_digits_and_a_few_signs(name: str) -> None:
    assert parse_name(name) == name


@pytest.mark.parametrize("name", ["", "a b", "-a", ".a", "a/b", "ä", "x" * 101, "a\n", 5])
def test_what_is_no_name_is_refused(name: object) -> None:
    with pytest.raises(ValueError, match="expected a name"):
        parse_name(name)


@given(st.one_of(st.text(), st.integers(), st.booleans(), st.lists(st.none())))
def test_a_quoted_value_stays_short_and_on_one_line(value: object) -> None:
    text = quoted(value)
    assert "\n" not in text
    assert len(text) <= 6 * 60 + 2  # every character of a cut text might be an escape
