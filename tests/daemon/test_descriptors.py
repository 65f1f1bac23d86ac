"""Descriptors: enough for the work, and some that it leaves."""

from __future__ import annotations

import os
from collections.abc import Iterator
from resource import RLIMIT_NOFILE, getrlimit, setrlimit

import pytest

from redrived import descriptors


@pytest.fixture
def few() -> Iterator[int]:
    """A low limit, of which more than is kept is free; as far as anybody may raise it."""
    soft, hard = getrlimit(RLIMIT_NOFILE)
    setrlimit(RLIMIT_NOFILE, (2 * len(os.listdir("/proc/self/fd")) + 200, hard))
    yield hard
    setrlimit(RLIMIT_NOFILE, (soft, hard))


def test_the_limit_is_raised_to_what_the_work_needs_and_never_lowered(few: int) -> None:
    descriptors.provide(100)
    raised, hard = getrlimit(RLIMIT_NOFILE)
    assert raised == min(descriptors.OTHERS + 100 * descriptors.EACH, few)
    assert hard == few
    descriptors.provide(1)
    assert getrlimit(RLIMIT_NOFILE) == (raised, hard)


def test_work_stops_before_connections_do_and_both_go_on(few: int) -> None:
    taken: list[int] = []
    limit, _ = getrlimit(RLIMIT_NOFILE)

    def take_until(is_so: bool) -> None:
        while (descriptors.are_scarce(), descriptors.are_nearly_gone()) != (True, is_so):
            taken.append(os.open(os.devnull, os.O_RDONLY))

    try:
        assert not descriptors.are_scarce()
        take_until(False)
        take_until(True)
        left = limit - len(os.listdir("/proc/self/fd"))
        kept = min(descriptors.KEPT, limit // 2)
        assert kept // 8 < left <= kept // 4
        for one in taken[::2]:  # what is free is counted, wherever it lies
            os.close(one)
        del taken[::2]
        assert not descriptors.are_nearly_gone()
    finally:
        for one in taken:
            os.close(one)
    assert not descriptors.are_scarce()
