from __future__ import annotations

import pytest

from redrived.engine.health import Signs, ailment

WELL = Signs()


@pytest.mark.parametrize(
    ("signs", "told"),
    [
        (WELL, None),
        (Signs(lag=7.0), None),
        (Signs(lag=8.0), "the loop came 8.0 s late"),
        (Signs(timers_armed=False), "the timers were asleep"),
        (Signs(silence=60), "the store has taken nothing for 60 s"),
        (Signs(dispatching=40), "a dispatch has been under way for 40 s"),
    ],
)
def test_only_a_daemon_that_works_is_called_well(signs: Signs, told: str | None) -> None:
    assert ailment(signs, patience=7.5) == told


def test_a_store_that_told_of_its_trouble_is_waited_for() -> None:
    assert ailment(Signs(silence=600, dispatching=600, store_in_trouble=True), 7.5) is None


def test_trouble_of_the_store_excuses_no_other() -> None:
    assert ailment(Signs(lag=20, store_in_trouble=True), 7.5) is not None
