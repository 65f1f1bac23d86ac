from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.clock import SECOND, from_datetime
from redrive.config.sections import Schedule
from redrive.cron import CronProblem
from redrive.schedules import Due, Missed, ScheduleProblem, Timing, catch_up

MINUTE, HOUR, DAY = 60 * SECOND, 3600 * SECOND, 86400 * SECOND


def at(text: str) -> int:
    return from_datetime(datetime.fromisoformat(text).replace(tzinfo=UTC))


NOON = at("2026-06-01T12:00")

cron_lines = st.sampled_from(
    ["* * * * *", "*/7 * * * *", "30 2 * * *", "0 0 1 * *", "0 9 * * mon-fri", "15 1-4 29 2 *"]
)
timings = st.one_of(
    st.builds(
        lambda line, zone: Timing.of(Schedule(cron=line, timezone=zone)),
        cron_lines,
        st.sampled_from(["UTC", "Europe/Berlin", "Australia/Lord_Howe", "Africa/Casablanca"]),
    ),
    st.floats(60, 1e6).map(lambda every: Timing.of(Schedule(every=every))),
    st.integers(NOON - DAY, NOON + DAY).map(lambda slot: Timing(at=slot, zone=ZoneInfo("UTC"))),
)
instants = st.integers(at("2026-01-01T00:00"), at("2027-12-31T00:00"))


def test_an_interval_keeps_to_multiples_since_1970_whenever_it_is_asked() -> None:
    every_10m = Timing.of(Schedule(every=600.0))
    assert every_10m.next_after(NOON) == NOON + 10 * MINUTE
    assert every_10m.next_after(NOON + 7 * MINUTE + 1) == NOON + 10 * MINUTE
    assert every_10m.next_after(NOON - 1) == NOON


def test_an_interval_may_be_shorter_than_a_second() -> None:
    every_100ms = Timing.of(Schedule(every=0.1))
    assert every_100ms.slots_between(NOON, NOON + SECOND // 4) == [NOON + 100_000, NOON + 200_000]


def test_a_date_has_one_slot_and_then_none() -> None:
    once = Timing.of(Schedule(at=datetime(2026, 6, 1, 12, tzinfo=UTC)))
    assert once.next_after(NOON - 1) == NOON
    assert once.next_after(NOON) is None


def test_a_date_without_an_offset_is_local_to_the_schedules_zone() -> None:
    local = datetime(2026, 6, 1, 14)  # noqa: DTZ001 - as TOML gives it
    once = Timing.of(Schedule(at=local, timezone="Europe/Berlin"))
    assert once.next_after(0) == NOON


def test_a_cron_line_fires_in_the_schedules_zone() -> None:
    nightly = Timing.of(Schedule(cron="0 3 * * *", timezone="Europe/Berlin"))
    assert nightly.next_after(NOON) == at("2026-06-02T01:00")


@pytest.mark.parametrize(
    ("schedule", "words"),
    [
        (
            Schedule(cron="0 3 * * *", timezone="Europe/Berlin"),
            "daily at 03:00 (Europe/Berlin)",
        ),
        (Schedule(every=5400.0), "every 1h30m"),
        (Schedule(every=0.25), "every 250ms"),
        (
            Schedule(at=datetime(2026, 12, 1, tzinfo=UTC), timezone="Europe/Berlin"),
            "once at 2026-12-01 01:00:00 (Europe/Berlin)",
        ),
    ],
)
def test_a_schedule_is_described_in_words(schedule: Schedule, words: str) -> None:
    assert Timing.of(schedule).describe() == words


@pytest.mark.parametrize(
    ("schedule", "problem"),
    [
        (
            Schedule(every=1.0, timezone="Europe/Berlyn"),
            "timezone: 'Europe/Berlyn' is unknown, did you mean 'Europe/Berlin'?",
        ),
        (Schedule(every=1.0, timezone="../etc/passwd"), "timezone: '../etc/passwd' is unknown"),
        (Schedule(every=1e-9), "every: 1e-09 s is no interval"),
        (Schedule(), "no times: expected one of cron, every and at"),
    ],
)
def test_a_schedule_without_usable_times_is_refused(schedule: Schedule, problem: str) -> None:
    with pytest.raises(ScheduleProblem) as caught:
        Timing.of(schedule)
    assert str(caught.value).startswith(problem)


def test_a_bad_cron_line_is_refused_by_the_parser() -> None:
    with pytest.raises(CronProblem):
        Timing.of(Schedule(cron="0 25 * * *"))


@given(timing=timings, after=instants, count=st.integers(1, 20))
def test_slots_follow_each_other_without_gap_or_repetition(
    timing: Timing, after: int, count: int
) -> None:
    slots = timing.slots_between(after, after + 400 * DAY, count)
    asked_one_by_one: list[int] = []
    slot = timing.next_after(after)
    while slot is not None and slot <= after + 400 * DAY and len(asked_one_by_one) < count:
        asked_one_by_one.append(slot)
        slot = timing.next_after(slot)
    assert slots == asked_one_by_one
    assert slots == sorted(set(slots))


@given(timing=timings, after=instants, span=st.integers(0, 3 * DAY), limit=st.integers(1, 50))
def test_the_latest_slots_are_the_end_of_all_slots(
    timing: Timing, after: int, span: int, limit: int
) -> None:
    until = after + span
    assert timing.latest_slots(after, until, limit) == timing.slots_between(after, until)[-limit:]


# What a schedule of every ten minutes does about the hour 11:00-12:00 it did not see.
EVERY_10M = Timing.of(Schedule(every=600.0))


@pytest.mark.parametrize(
    ("missed", "now", "expected"),
    [
        (
            "all",
            NOON + MINUTE,
            Due(fire=tuple(range(NOON - 50 * MINUTE, NOON + 1, 10 * MINUTE)), missed_since=None),
        ),
        ("once", NOON + MINUTE, Due(fire=(NOON,), missed_since=NOON - 50 * MINUTE)),
        ("skip", NOON + MINUTE, Due(fire=(), missed_since=NOON - 50 * MINUTE)),
        ("skip", NOON + SECOND, Due(fire=(NOON,), missed_since=NOON - 50 * MINUTE)),
    ],
)
def test_after_an_absence_the_policy_chooses_what_to_fire(
    missed: Missed, now: int, expected: Due
) -> None:
    due = catch_up(EVERY_10M, missed, NOON - HOUR, now, 100)
    assert due.fire == expected.fire
    assert due.missed_since == expected.missed_since
    assert due.next == NOON + 10 * MINUTE


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_a_slot_that_is_only_just_due_is_fired_and_nothing_was_missed(missed: Missed) -> None:
    due = catch_up(EVERY_10M, missed, NOON - 10 * MINUTE, NOON + 2000, 100)
    assert due == Due(fire=(NOON,), missed_since=None, next=NOON + 10 * MINUTE)


@pytest.mark.parametrize("missed", ["skip", "once", "all"])
def test_nothing_is_due_before_the_next_slot(missed: Missed) -> None:
    due = catch_up(EVERY_10M, missed, NOON, NOON + MINUTE, 100)
    assert due == Due(fire=(), missed_since=None, next=NOON + 10 * MINUTE)


def test_all_is_bounded_by_the_latest_ones_and_names_the_oldest_it_lets_go() -> None:
    due = catch_up(EVERY_10M, "all", NOON - DAY, NOON, 3)
    assert due.fire == (NOON - 20 * MINUTE, NOON - 10 * MINUTE, NOON)
    assert due.missed_since == NOON - DAY + 10 * MINUTE


class Counted(Timing, frozen=True, kw_only=True):
    """A timing that counts the slots it was made to compute."""

    computed: list[int]

    def slots_between(self, after: int, until: int, limit: int | None = None) -> list[int]:
        slots = super().slots_between(after, until, limit)
        self.computed.extend(slots)
        return slots


@pytest.mark.parametrize("schedule", [Schedule(every=1.0), Schedule(cron="* * * * *")])
def test_three_days_of_absence_cost_no_more_than_the_limit(schedule: Schedule) -> None:
    made = Timing.of(schedule)
    timing = Counted(cron=made.cron, every=made.every, zone=made.zone, computed=[])
    due = catch_up(timing, "all", NOON - 3 * DAY, NOON, 100)
    assert len(due.fire) == 100
    assert len(timing.computed) <= 200


def test_a_clock_set_forth_an_hour_is_an_absence_of_an_hour() -> None:
    due = catch_up(EVERY_10M, "once", NOON, NOON + HOUR, 100)
    assert due.fire == (NOON + HOUR,)


def test_a_clock_set_back_an_hour_fires_no_slot_twice() -> None:
    before = catch_up(EVERY_10M, "all", NOON - 10 * MINUTE, NOON, 100)
    after = catch_up(EVERY_10M, "all", before.fire[-1], NOON - HOUR, 100)
    assert after == Due(fire=(), missed_since=None, next=NOON + 10 * MINUTE)


def test_a_clock_that_jitters_by_a_second_fires_each_slot_once() -> None:
    fired: list[int] = []
    since = NOON - 1
    for minute in range(60):
        for jitter in (0, SECOND, -SECOND):
            due = catch_up(EVERY_10M, "all", since, NOON + minute * MINUTE + jitter, 100)
            fired.extend(due.fire)
            since = max((since, *due.fire))
    assert fired == [NOON + minutes * MINUTE for minutes in range(0, 60, 10)]


def test_a_clock_that_was_years_ahead_does_not_silence_a_schedule_for_years() -> None:
    years_ahead = NOON + 3650 * DAY
    due = catch_up(EVERY_10M, "once", years_ahead, NOON + MINUTE, 100)
    assert due == Due(fire=(), missed_since=None, next=NOON + 10 * MINUTE)


def test_a_new_schedule_owes_nothing_for_the_time_before_it() -> None:
    once = Timing.of(Schedule(at=datetime(2026, 6, 1, 12, tzinfo=UTC)))
    assert catch_up(once, "once", since=NOON + DAY, now=NOON + DAY, max_missed=100) == Due(
        fire=(), missed_since=None, next=None
    )


@given(
    timing=timings,
    missed=st.sampled_from(["skip", "once", "all"]),
    since=instants,
    absence=st.timedeltas(timedelta(), timedelta(days=3)),
)
def test_whatever_is_fired_is_a_slot_of_the_absence_and_the_next_one_lies_ahead(
    timing: Timing, missed: Missed, since: int, absence: timedelta
) -> None:
    now = since + absence // timedelta(microseconds=1)
    due = catch_up(timing, missed, since, now, 10)
    assert len(due.fire) <= 10
    assert all(since < slot <= now for slot in due.fire)
    assert all(timing.next_after(slot - 1) == slot for slot in due.fire)
    assert due.next is None or due.next > now
