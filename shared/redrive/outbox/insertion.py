"""What is written into the outbox, checked as far as it can be without the daemon.

A mistake that is found here costs the application an exception. Found by the database, it
would cost the whole transaction.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from typing import NamedTuple

import msgspec

from redrive.errors import UsageProblem
from redrive.orders import check, check_words
from redrive.protocol.commands import JobOrder
from redrive.protocol.writing import writing

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,62}")


class Rows(NamedTuple):
    tickets: list[str]
    json: str  # [[ticket, task, wish]...]


class Insertion:
    """The statement for one schema."""

    def __init__(self, schema: str | None) -> None:
        if schema is not None and not _NAME.fullmatch(schema):
            raise UsageProblem(
                f"{schema!r} is no name of a schema", hint="letters, digits and _, as in `redrive`"
            )
        self._table = "outbox" if schema is None else f'"{schema}".outbox'

    def sql(self, placeholder: str) -> str:
        """One parameter, however many rows: PostgreSQL takes them apart, in their order."""
        return (
            f"INSERT INTO {self._table} (ticket, task, wish)"
            " SELECT v ->> 0, v ->> 1, v ->> 2"
            f" FROM json_array_elements(CAST(CAST({placeholder} AS text) AS json))"
            " WITH ORDINALITY AS e(v, o) ORDER BY o"
        )

    def rows(self, task: str, orders: Iterable[JobOrder]) -> Rows:
        check_words(("name of the task", task))
        with writing():
            written = [(os.urandom(16).hex(), task, _written(order)) for order in orders]
            return Rows([ticket for ticket, *_ in written], msgspec.json.encode(written).decode())


def _written(order: JobOrder) -> str:
    check(order)
    return msgspec.json.encode(order).decode()
