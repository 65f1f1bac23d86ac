"""Slots around the nights on which clocks are moved: golden lists, five zones, both edges."""

from __future__ import annotations

from datetime import datetime
from itertools import takewhile
from zoneinfo import ZoneInfo

import pytest

from redrive.cron import parse_cron

# zone, line, from (local, excluded), to (local, included), the fires as local time with offset
GOLDEN = [
    # 02:00 becomes 03:00: the wall-clock line fires right after the gap, real time goes on.
    ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00+01:00", "2026-03-30T12:00+02:00",
     ["2026-03-29T03:00+02:00", "2026-03-30T02:30+02:00"]),
    ("Europe/Berlin", "*/30 * * * *", "2026-03-29T01:00+01:00", "2026-03-29T03:30+02:00",
     ["2026-03-29T01:30+01:00", "2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]),
    ("Europe/Berlin", "*/30 2 * * *", "2026-03-28T12:00+01:00", "2026-03-29T12:00+02:00", []),
    ("Europe/Berlin", "0,30 2,3 * * *", "2026-03-28T12:00+01:00", "2026-03-29T12:00+02:00",
     ["2026-03-29T03:00+02:00", "2026-03-29T03:30+02:00"]),
    # 03:00 becomes 02:00: the first 02:30 only; real time sees both.
    ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00+02:00", "2026-10-26T12:00+01:00",
     ["2026-10-25T02:30+02:00", "2026-10-26T02:30+01:00"]),
    ("Europe/Berlin", "30 * * * *", "2026-10-25T01:30+02:00", "2026-10-25T03:30+01:00",
     ["2026-10-25T02:30+02:00", "2026-10-25T02:30+01:00", "2026-10-25T03:30+01:00"]),
    ("Europe/Berlin", "*/30 2 * * *", "2026-10-24T12:00+02:00", "2026-10-25T12:00+01:00",
     ["2026-10-25T02:00+02:00", "2026-10-25T02:30+02:00",
      "2026-10-25T02:00+01:00", "2026-10-25T02:30+01:00"]),
    ("America/New_York", "30 2 * * *", "2026-03-07T12:00-05:00", "2026-03-09T12:00-04:00",
     ["2026-03-08T03:00-04:00", "2026-03-09T02:30-04:00"]),
    ("America/New_York", "0 * * * *", "2026-03-08T00:00-05:00", "2026-03-08T04:00-04:00",
     ["2026-03-08T01:00-05:00", "2026-03-08T03:00-04:00", "2026-03-08T04:00-04:00"]),
    ("America/New_York", "30 1 * * *", "2026-10-31T12:00-04:00", "2026-11-02T12:00-05:00",
     ["2026-11-01T01:30-04:00", "2026-11-02T01:30-05:00"]),
    ("America/New_York", "0 * * * *", "2026-11-01T00:00-04:00", "2026-11-01T02:00-05:00",
     ["2026-11-01T01:00-04:00", "2026-11-01T01:00-05:00", "2026-11-01T02:00-05:00"]),
    # Lord Howe moves its clocks by half an hour: 02:00 becomes 02:30, and 02:00 becomes 01:30.
    ("Australia/Lord_Howe", "15 2 * * *", "2026-10-03T12:00+10:30", "2026-10-05T12:00+11:00",
     ["2026-10-04T02:30+11:00", "2026-10-05T02:15+11:00"]),
    ("Australia/Lord_Howe", "*/15 * * * *", "2026-10-04T01:30+10:30", "2026-10-04T02:45+11:00",
     ["2026-10-04T01:45+10:30", "2026-10-04T02:30+11:00", "2026-10-04T02:45+11:00"]),
    ("Australia/Lord_Howe", "45 1 * * *", "2026-04-04T12:00+11:00", "2026-04-06T12:00+10:30",
     ["2026-04-05T01:45+11:00", "2026-04-06T01:45+10:30"]),
    ("Australia/Lord_Howe", "*/15 * * * *", "2026-04-05T01:30+11:00", "2026-04-05T02:00+10:30",
     ["2026-04-05T01:45+11:00", "2026-04-05T01:30+10:30", "2026-04-05T01:45+10:30",
      "2026-04-05T02:00+10:30"]),
    # Casablanca turns its clocks back for Ramadan, and forward after it.
    ("Africa/Casablanca", "30 2 * * *", "2026-02-14T12:00+01:00", "2026-02-16T12:00+00:00",
     ["2026-02-15T02:30+01:00", "2026-02-16T02:30+00:00"]),
    ("Africa/Casablanca", "0 * * * *", "2026-02-15T01:00+01:00", "2026-02-15T03:00+00:00",
     ["2026-02-15T02:00+01:00", "2026-02-15T02:00+00:00", "2026-02-15T03:00+00:00"]),
    ("Africa/Casablanca", "30 2 * * *", "2026-03-21T12:00+00:00", "2026-03-23T12:00+01:00",
     ["2026-03-22T03:00+01:00", "2026-03-23T02:30+01:00"]),
    ("Pacific/Auckland", "30 2 * * *", "2026-09-26T12:00+12:00", "2026-09-28T12:00+13:00",
     ["2026-09-27T03:00+13:00", "2026-09-28T02:30+13:00"]),
    ("Pacific/Auckland", "30 2 * * *", "2026-04-04T12:00+13:00", "2026-04-06T12:00+12:00",
     ["2026-04-05T02:30+13:00", "2026-04-06T02:30+12:00"]),
    ("Pacific/Auckland", "*/30 * * * *", "2026-04-05T02:00+13:00", "2026-04-05T03:00+12:00",
     ["2026-04-05T02:30+13:00", "2026-04-05T02:00+12:00", "2026-04-05T02:30+12:00",
      "2026-04-05T03:00+12:00"]),
    # Midnight itself can be missing, or come back as 23:00 of the day before.
    ("Asia/Beirut", "30 0 * * *", "2026-03-28T12:00+02:00", "2026-03-30T12:00+03:00",
     ["2026-03-29T01:00+03:00", "2026-03-30T00:30+03:00"]),
    ("Asia/Beirut", "0 * * * *", "2026-10-24T22:00+03:00", "2026-10-25T00:00+02:00",
     ["2026-10-24T23:00+03:00", "2026-10-24T23:00+02:00", "2026-10-25T00:00+02:00"]),
    # Samoa had no 30 December 2011 at all.
    ("Pacific/Apia", "0 6 * * *", "2011-12-29T12:00-10:00", "2012-01-01T00:00+14:00",
     ["2011-12-31T00:00+14:00", "2011-12-31T06:00+14:00"]),
]  # fmt: skip


@pytest.mark.parametrize(("zone", "line", "after", "until", "expected"), GOLDEN)
def test_the_slots_of_a_night_that_moves_the_clocks_are_the_golden_ones(
    zone: str, line: str, after: str, until: str, expected: list[str]
) -> None:
    place = ZoneInfo(zone)
    end = datetime.fromisoformat(until)
    moments = parse_cron(line).fires(datetime.fromisoformat(after), place)
    slots = [
        moment.astimezone(place).isoformat(timespec="minutes")
        for moment in takewhile(lambda moment: moment <= end, moments)
    ]
    assert slots == expected
