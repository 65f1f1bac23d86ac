"""Values that are nested too deeply are refused where they come in."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.errors import UsageProblem
from redrive.nesting import MOST, is_deep
from redrive.orders import checked_args


def nested(levels: int) -> dict[str, Any]:
    """A table with lists in it, of so many levels in all."""
    value: Any = []
    for _ in range(levels - 2):
        value = [value]
    return {"a": value}


def test_arguments_may_be_as_deep_as_everybody_can_read_and_no_deeper() -> None:
    assert not is_deep(nested(MOST))
    assert checked_args(nested(MOST)).startswith('{"a":[[')
    for levels in (MOST + 1, 500):
        with pytest.raises(UsageProblem, match="nested more than 100 levels deep"):
            checked_args(nested(levels))


def test_what_is_wide_is_not_deep() -> None:
    assert checked_args({"rows": [[n] for n in range(1000)]})
