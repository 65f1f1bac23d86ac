from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice, takewhile
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.cron import CronProblem, parse_cron

UTC_ZONE = ZoneInfo("UTC")


def fires(line: str, after: str, count: int = 3) -> list[str]:
    """The next fires in UTC, without the zone and the seconds."""
    start = datetime.fromisoformat(after).replace(tzinfo=UTC)
    moments = islice(parse_cron(line).fires(start, UTC_ZONE), count)
    return [moment.strftime("%Y-%m-%d %H:%M") for moment in moments]


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("* * * * *", ["2026-01-01 00:01", "2026-01-01 00:02", "2026-01-01 00:03"]),
        ("*/20 * * * *", ["2026-01-01 00:20", "2026-01-01 00:40", "2026-01-01 01:00"]),
        ("10-14/2 6 * * *", ["2026-01-01 06:10", "2026-01-01 06:12", "2026-01-01 06:14"]),
        ("0 3,15 * * *", ["2026-01-01 03:00", "2026-01-01 15:00", "2026-01-02 03:00"]),
        ("0 0 1 JAN,jul *", ["2026-07-01 00:00", "2027-01-01 00:00", "2027-07-01 00:00"]),
        ("0 0 29 2 *", ["2028-02-29 00:00", "2032-02-29 00:00", "2036-02-29 00:00"]),
        ("0 0 31 * *", ["2026-01-31 00:00", "2026-03-31 00:00", "2026-05-31 00:00"]),
        ("@hourly", ["2026-01-01 01:00", "2026-01-01 02:00", "2026-01-01 03:00"]),
        ("@Monthly", ["2026-02-01 00:00", "2026-03-01 00:00", "2026-04-01 00:00"]),
    ],
)
def test_a_line_fires_when_cron_would(line: str, expected: list[str]) -> None:
    assert fires(line, "2026-01-01T00:00") == expected


@pytest.mark.parametrize("sunday", ["0", "7", "sun", "SUN", "7-7", "0-0"])
def test_zero_and_seven_are_both_sunday(sunday: str) -> None:
    assert fires(f"0 0 * * {sunday}", "2026-01-01T00:00", 2) == [
        "2026-01-04 00:00",
        "2026-01-11 00:00",
    ]


def test_a_range_of_days_may_end_on_sunday() -> None:
    assert parse_cron("0 0 * * fri-sun").weekdays == {5, 6, 0}


def test_either_day_will_do_when_both_are_restricted() -> None:
    # 2026-01-05 is a Monday, the 13th a Tuesday.
    assert fires("0 0 13 * mon", "2026-01-02T00:00") == [
        "2026-01-05 00:00",
        "2026-01-12 00:00",
        "2026-01-13 00:00",
    ]


def test_both_days_must_fit_when_one_begins_with_a_star() -> None:
    assert fires("0 0 */2 * mon", "2026-01-02T00:00") == [
        "2026-01-05 00:00",
        "2026-01-19 00:00",
        "2026-02-09 00:00",
    ]


def test_a_fire_is_after_the_instant_never_at_it() -> None:
    assert fires("0 0 * * *", "2026-01-01T00:00", 1) == ["2026-01-02 00:00"]
    assert fires("0 0 * * *", "2025-12-31T23:59:59.999999", 1) == ["2026-01-01 00:00"]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("61 * * * *", "minute: 61 is out of range, expected 0-59, with `*`, `,`, `-` and `/`"),
        ("* 24 * * *", "hour: 24 is out of range"),
        ("* * 0 * *", "day of month: 0 is out of range, expected 1-31"),
        ("* * * foo *", "month: 'foo' is unknown, expected 1-12 or jan-dec"),
        ("* * * * 8", "day of week: 8 is out of range, expected 0-7 or sun-sat"),
        ("* * * * mon-", "day of week: cannot read 'mon-'"),
        ("? * * * *", "minute: cannot read '?'"),
        ("* * L * *", "day of month: 'l' is unknown"),
        ("*/0 * * * *", "minute: '*/0' steps by 0, expected at least 1"),
        ("5/15 * * * *", "minute: '5/15' steps from one value, expected a range, as in 5-59/15"),
        ("30-10 * * * *", "minute: '30-10' runs backwards, expected the lower end first"),
        ("* * * *", "4 fields in '* * * *', expected 5: minute, hour, day of month, month"),
        ("* * * * * *", "6 fields"),
        ("", "0 fields"),
        ("@reboot", "'@reboot' is unknown, expected @hourly, @daily"),
        ("0 0 30 2 *", "day of month: 30 never comes in month 2"),
        ("0 0 31 4,6,9,11 */2", "day of month: 31 never comes in month 4,6,9,11"),
    ],
)
def test_a_bad_line_is_refused_with_its_field_and_what_was_expected(
    line: str, problem: str
) -> None:
    with pytest.raises(CronProblem) as caught:
        parse_cron(line)
    assert str(caught.value).startswith(problem)


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("0 3 * * *", "daily at 03:00"),
        ("@daily", "daily at 00:00"),
        ("*/15 * * * *", "every 15 min"),
        ("* * * * *", "every minute"),
        ("0 * * * *", "hourly"),
        ("5 * * * *", "hourly at :05"),
        ("0 */6 * * *", "every 6 h"),
        ("0 6 1 * *", "at 06:00 on the 1st of every month"),
        ("0 6 12 * *", "at 06:00 on the 12th of every month"),
        ("0 6 22 * *", "at 06:00 on the 22nd of every month"),
        ("30 9 * * mon-fri", "Monday to Friday at 09:30"),
        ("0 4 * * 0", "every Sunday at 04:00"),
        ("0 4 * * 0,1", "Mon, Sun at 04:00"),
        ("0 0 25 12 *", "at 00:00 on 25 December"),
        ("*/7 * * * *", "*/7 * * * *"),
        ("0 3 13 * 5", "0 3 13 * 5"),
        ("0  3 13 *   5", "0 3 13 * 5"),
    ],
)
def test_words_say_it_plainly_or_leave_it_as_written(line: str, words: str) -> None:
    assert parse_cron(line).words() == words


def times(low: int, high: int) -> st.SearchStrategy[str]:
    numbers = st.integers(low, high)
    return st.one_of(
        st.just("*"),
        st.integers(1, high).map("*/{}".format),
        st.lists(numbers, min_size=1, max_size=3).map(lambda values: ",".join(map(str, values))),
        st.tuples(numbers, numbers).map(lambda ends: "{}-{}".format(*sorted(ends))),
    )


# Zones whose clocks move by an hour, by half an hour, by night and at midnight.
zones = st.sampled_from(
    ["Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca", "America/Havana", "Asia/Beirut"]
).map(ZoneInfo)
instants = st.integers(0, 2 * 365 * 86400).map(
    lambda seconds: datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=seconds)
)


@given(minute=times(0, 59), hour=times(0, 23), zone=zones, after=instants)
def test_real_time_lines_fire_at_every_minute_whose_local_time_fits(
    minute: str, hour: str, zone: ZoneInfo, after: datetime
) -> None:
    cron = parse_cron(f"{minute} {hour} * * *")
    end = after + timedelta(days=1)
    found = list(takewhile(lambda moment: moment <= end, cron.fires(after, zone)))

    first = after.replace(second=0, microsecond=0)
    minutes = [first + timedelta(minutes=count) for count in range(1, 1441)]
    locals_ = [(moment, moment.astimezone(zone)) for moment in minutes]
    expected = [
        moment
        for moment, local in locals_
        if local.minute in cron.minutes and local.hour in cron.hours
    ]
    moved = after.astimezone(zone).utcoffset() != end.astimezone(zone).utcoffset()
    if cron.by_real_time or not moved:
        assert found == expected
    else:
        assert len({moment.astimezone(zone).replace(tzinfo=None) for moment in found}) == len(found)


@given(line=st.tuples(times(0, 59), times(0, 23)).map(" ".join), zone=zones, after=instants)
def test_asking_again_from_any_fire_continues_the_same_list(
    line: str, zone: ZoneInfo, after: datetime
) -> None:
    cron = parse_cron(f"{line} * * *")
    expected = list(islice(cron.fires(after, zone), 5))
    chained = [after]
    for _ in range(5):
        chained.append(next(cron.fires(chained[-1], zone)))
    assert chained[1:] == expected
