"""The lines of the log: one for each thing that happened, written with the change it tells of."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING

from redrived.store.rows import MANY

if TYPE_CHECKING:
    from redrived.store.unit import Unit

# at, type, job, run, attempt, state, attempts, data (JSON text)
EventRow = tuple[int, str, int | None, int | None, int | None, str | None, int | None, str | None]
Shape = tuple[str, str | None, str | None]  # what many lines say alike: type, state, data

FEW = 4  # shapes that are worth telling apart


def write(unit: Unit, first: int, events: Sequence[EventRow]) -> None:
    """Write down what happened, numbered from `first`."""
    shapes = _shapes(events)
    if shapes is None:
        lines = [(seq, *event) for seq, event in enumerate(events, first)]
        unit.each(lines, _COLUMNS, _INSERT_EACH)
        return
    at, _, job, run, attempt, _, attempts, _ = zip(*events, strict=True)
    seqs = range(first, first + len(events))
    said = {
        f"{name}{n}": value
        for shape, n in shapes.items()
        for name, value in zip(("type", "state", "data"), shape, strict=True)
    }
    unit.each_of(
        (seqs, at, job, run, attempt, attempts, [shapes[each] for each in map(_shape, events)]),
        _SHAPED_COLUMNS,
        _insert_shaped(len(shapes)),
        **said,
    )


def _shapes(events: Sequence[EventRow]) -> dict[Shape, int] | None:
    """The shapes of many lines, numbered, where they are few: each then travels once."""
    if len(events) < MANY:
        return None
    shapes = set(map(_shape, events))
    return {shape: n for n, shape in enumerate(shapes)} if len(shapes) <= FEW else None


_shape = itemgetter(1, 5, 7)


@lru_cache
def _insert_shaped(n: int) -> str:
    whens = (
        " ".join(f"WHEN {each} THEN CAST(:{name}{each} AS text)" for each in range(n))
        for name in ("type", "state", "data")
    )
    return _INSERT.format(*(f"CASE r.shape {when} END" for when in whens))


_COLUMNS = (
    "seq bigint",
    "at bigint",
    "type",
    "job bigint",
    "run bigint",
    "attempt int",
    "state",
    "attempts int",
    "data",
)
_SHAPED_COLUMNS = (
    "seq bigint",
    "at bigint",
    "job bigint",
    "run bigint",
    "attempt int",
    "attempts int",
    "shape int",
)
_INSERT = (
    "INSERT INTO events (seq, at, type, job, run, attempt, state, attempts, data)"
    " SELECT r.seq, r.at, {}, r.job, r.run, r.attempt, {}, r.attempts, {} FROM {{rows}}"
)
_INSERT_EACH = _INSERT.format("r.type", "r.state", "r.data")
