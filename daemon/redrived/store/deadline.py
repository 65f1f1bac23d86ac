"""A connection to PostgreSQL that waits for no answer for ever.

A server can fall silent without a word: its machine is gone, or something between has
forgotten the connection. TCP notices that only while it sends, so each question has a
deadline of its own here, and a connection that misses it is closed.
"""

from __future__ import annotations

import time
from typing import Any, TypeVar

import psycopg
from psycopg.abc import PQGen

WITHIN = 10.0  # seconds; the server itself gives up a little earlier

Answer = TypeVar("Answer")


class BoundedConnection(psycopg.Connection[Any]):
    within: float | None = None  # seconds; None: as everywhere

    def wait(self, gen: PQGen[Answer], *args: Any, **options: Any) -> Answer:
        return super().wait(self._bounded(gen), *args, **options)

    def _bounded(self, gen: PQGen[Answer]) -> PQGen[Answer]:
        """The same steps; psycopg takes one at least every tenth of a second, ready or not."""
        within = WITHIN if self.within is None else self.within
        deadline = time.monotonic() + within
        try:
            wanted = next(gen)
            while True:
                ready = yield wanted
                if not ready and time.monotonic() > deadline:
                    self.close()
                    raise psycopg.OperationalError(f"no answer within {within:g} s")
                wanted = gen.send(ready)
        except StopIteration as end:
            answer: Answer = end.value
            return answer
