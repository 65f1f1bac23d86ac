"""Arguments that no JSON can hold are refused in words, not changed and not a bug."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.errors import UsageProblem
from redrive.orders import checked_args

NAN, INFINITE = float("nan"), float("inf")


@pytest.mark.parametrize("key", [None, True, (1, 2)])
def test_a_key_that_no_object_can_have_is_refused(key: object) -> None:
    with pytest.raises(UsageProblem, match="this cannot be sent: Only dicts with str-like"):
        checked_args({"table": {key: 1}})


@pytest.mark.parametrize("value", [NAN, -INFINITE, [1.0, NAN], {"deep": [{"er": INFINITE}]}])
def test_a_number_that_json_does_not_have_is_refused_and_not_lost(value: Any) -> None:
    with pytest.raises(UsageProblem, match="a number that JSON does not have"):
        checked_args({"n": value})


def test_null_and_large_numbers_are_usual_values() -> None:
    assert checked_args({"a": None, "b": [1e308, "null"]}) == '{"a":null,"b":[1e308,"null"]}'
