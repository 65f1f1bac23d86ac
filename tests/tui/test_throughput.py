from __future__ import annotations

from redrive.clock import SECOND
from redrive_tui.throughput import BUCKET_SECONDS, BUCKETS, Ring, Throughput
from support.clock import START

STEP = BUCKET_SECONDS * SECOND


def test_a_ring_knows_nothing_of_the_time_before_it_watched() -> None:
    ring = Ring()
    ring.add(START, 3)

    assert ring.amounts() == [None] * (BUCKETS - 1) + [3]


def test_a_ring_turns_with_time_and_forgets_the_oldest() -> None:
    ring = Ring()
    for step in range(BUCKETS + 5):
        ring.add(START + step * STEP, step)

    assert ring.amounts() == list(range(5, BUCKETS + 5))


def test_a_time_without_news_stays_a_gap() -> None:
    ring = Ring()
    ring.add(START, 1)
    ring.add(START + 3 * STEP, 2)

    assert ring.amounts()[-4:] == [1, None, None, 2]


def test_what_a_queue_finished_is_how_its_counts_grew() -> None:
    throughput = Throughput()
    throughput.read(START, {"done": 100, "dead": 2})
    throughput.read(START + SECOND, {"done": 109, "dead": 3})

    assert throughput.done.amounts()[-1] == 9
    assert throughput.died_share == 0.1


def test_what_retention_removes_is_not_counted_backwards() -> None:
    throughput = Throughput()
    throughput.read(START, {"done": 100})
    throughput.read(START + SECOND, {"done": 20})

    assert throughput.done.amounts()[-1] == 0


def test_the_rate_is_told_from_the_time_that_was_watched() -> None:
    throughput = Throughput()
    assert throughput.per_minute is None
    throughput.read(START, {"done": 0})
    for step in range(1, 3):
        throughput.read(START + step * STEP, {"done": step * 10})

    assert throughput.per_minute == 120
