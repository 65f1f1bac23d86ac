from __future__ import annotations

import pytest

from redrived.engine.health import Symptoms, ailment

WELL = Symptoms()


@pytest.mark.parametrize(
    ("signs", "told"),
    [
        (WELL, None),
        (Symptoms(lag=7.0), None),
        (Symptoms(lag=8.0), "the loop came 8.0 s late"),
        (Symptoms(timers_armed=False), "the timers were asleep"),
        (Symptoms(silence=60), "the store has taken nothing for 60 s"),
        (Symptoms(dispatching=40), "a dispatch has been under way for 40 s"),
    ],
)
def test_only_a_daemon_that_works_is_called_well(signs: Symptoms, told: str | None) -> None:
    assert ailment(signs, patience=7.5) == told


def test_a_store_that_told_of_its_trouble_is_waited_for() -> None:
    assert ailment(Symptoms(silence=600, dispatching=600, store_in_trouble=True), 7.5) is None


def test_trouble_of_the_store_excuses_no_other() -> None:
    assert ailment(Symptoms(lag=20, store_in_trouble=True), 7.5) is not None
