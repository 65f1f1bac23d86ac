"""What a handler says outright is looked at where it says it."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from typing import Any

import pytest

from redrive.outcomes import Snooze, Transient
from redrive.rules import Evidence, Rulebook


@pytest.mark.parametrize(
    ("given", "seconds"), [(None, None), (90, 90), (1.5, 1.5), (Decimal(3), 3), (-1, -1)]
)
def test_a_retry_comes_after_seconds(given: Any, seconds: float | None) -> None:
    assert Transient("later", retry_after=given).retry_after == seconds


def test_a_retry_comes_after_a_timedelta() -> None:
    assert Transient("later", retry_after=timedelta(minutes=1)).retry_after == 60


@pytest.mark.parametrize(
    ("given", "problem", "told"),
    [
        ("after the timeout", TypeError, "str"),
        ([1], TypeError, "list"),
        (datetime(2026, 1, 1, tzinfo=UTC), TypeError, "datetime"),
        (float("nan"), ValueError, "nan"),
        (10**400, ValueError, "inf"),
    ],
)
def test_a_strange_retry_after_is_refused(given: Any, problem: type[Exception], told: str) -> None:
    with pytest.raises(problem, match=f"^retry_after is seconds.*, not {told}$") as raised:
        Transient("later", retry_after=given)
    names = tuple(cls.__name__ for cls in problem.__mro__)
    found = Rulebook().classify(Evidence(message=str(raised.value), exception=names))
    assert (found.category, found.rule) == ("permanent", f"exception {problem.__name__}")


@pytest.mark.parametrize(
    "until", [0, -1e15, timedelta.max, datetime(2026, 1, 1, tzinfo=UTC)], ids=str
)
def test_a_snooze_lasts_for_seconds_or_until_a_moment(until: Any) -> None:
    assert Snooze(until).until == until


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ("tomorrow", TypeError),
        (None, TypeError),
        (date(2026, 1, 1), TypeError),
        (float("inf"), ValueError),
        (datetime(2026, 1, 1), ValueError),  # noqa: DTZ001
    ],
)
def test_a_strange_snooze_is_refused(given: Any, problem: type[Exception]) -> None:
    with pytest.raises(problem, match=r"^Snooze needs .*a datetime with a time zone"):
        Snooze(given)
