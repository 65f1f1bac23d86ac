"""What filters compare in a table, whichever it is: amounts, and text as each database has it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from operator import ge, gt, le, lt
from typing import Any

from sqlalchemy import BigInteger, ColumnElement, collate, literal, or_, true

from redrive.clock import SECOND
from redrive.filters.terms import Glob, Term

COMPARISONS: Mapping[str, Callable[[Any, Any], ColumnElement[bool]]] = {
    ">": gt,
    ">=": ge,
    "<": lt,
    "<=": le,
}
_GLOB_ESCAPES = {ord(special): f"[{special}]" for special in "*?["}
_LIKE_ESCAPES = {ord(special): f"\\{special}" for special in "%_\\"}


def turned(term: Term, condition: ColumnElement[bool]) -> ColumnElement[bool]:
    # What has no value is not what was excluded: NULL must not swallow the row.
    return condition.is_not(true()) if term.negated else condition


def equal_to_the_second(span: ColumnElement[Any], amounts: Iterable[int]) -> ColumnElement[bool]:
    seconds = [
        (literal(least, BigInteger), literal(least + SECOND - 1, BigInteger)) for least in amounts
    ]
    return or_(*(span.between(*second) for second in seconds))


class Texts:
    """Text with and without regard to capitals, in which the databases differ."""

    def __init__(self, *, is_sqlite: bool) -> None:
        self._is_sqlite = is_sqlite

    def fit(self, column: ColumnElement[Any], globs: Iterable[Glob]) -> ColumnElement[bool]:
        globs = list(globs)
        whole = column.in_([glob[0] for glob in globs if len(glob) == 1])
        return or_(whole, *(self._glob(column, glob) for glob in globs if len(glob) > 1))

    def like(self, column: ColumnElement[Any], glob: Glob) -> ColumnElement[bool]:
        """Capital letters or not."""
        if self._is_sqlite:
            return column.like(_pattern(glob), escape="\\")  # knows no capitals from A to Z
        return collate(column, "C").ilike(_pattern(glob), escape="\\")

    def _glob(self, column: ColumnElement[Any], glob: Glob) -> ColumnElement[bool]:
        if not self._is_sqlite:
            return column.like(_pattern(glob), escape="\\")
        parts = (part.translate(_GLOB_ESCAPES) for part in glob)
        return column.bool_op("GLOB")("*".join(parts))


def _pattern(glob: Glob) -> str:
    return "%".join(part.translate(_LIKE_ESCAPES) for part in glob)
