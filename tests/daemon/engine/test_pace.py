"""How many jobs make a hand, from how long they have taken."""

from __future__ import annotations

import pytest

from redrived.engine.pace import Pace
from redrived.processes.pool_worker import MOST_IN_HAND


@pytest.mark.parametrize(
    ("seconds", "hand"),
    [(0.0, MOST_IN_HAND), (0.000_1, 50), (0.001, 5), (0.002_6, 1), (0.005, 1), (1.0, 1)],
)
def test_a_hand_is_five_milliseconds_of_work(seconds: float, hand: int) -> None:
    pace = Pace()
    pace.note("task", 10, 10 * seconds)
    assert pace.hand("task") == hand


def test_nothing_is_put_behind_a_job_nobody_knows() -> None:
    pace = Pace()
    pace.note("another", 1, 0.001)
    assert (pace.expected("task"), pace.hand("task"), pace.slot("task")) == (None, 1, 1)


def test_one_slow_job_counts_at_once_and_many_quick_ones_bit_by_bit() -> None:
    pace = Pace()
    pace.note("task", 100, 0.1)
    pace.note("task", 1, 0.1)
    assert (pace.expected("task"), pace.hand("task")) == (0.1, 1)

    hands = []
    for _ in range(20):
        pace.note("task", 100, 0.099)
        hands.append(pace.hand("task"))
    assert (hands[:4], hands[-1]) == ([1, 1, 1, 1], 5)
    assert hands == sorted(hands)


def test_behind_a_command_waits_what_takes_no_longer_than_a_lease_is_worth() -> None:
    pace = Pace()
    pace.note("true", 10, 0.02)
    pace.note("make", 1, 1.0)
    assert (pace.slot("true"), pace.slot("make")) == (31, 1)
