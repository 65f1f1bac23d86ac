"""A unit of work: what operations do between the begin and the commit of one group.

Operations change rows and *say* what they did (`emit`, `moved`); the log lines and the counts
they amount to are written once, together, just before the commit. That is what keeps `seq`
dense and in commit order, and an event inseparable from the change it tells of.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, TypeVar, cast

import msgspec
from sqlalchemy import Connection, Executable

from redrive.config.sections import Queue, rank
from redrive.lifecycle import JobState
from redrived.store import log
from redrived.store.answers import DriverRows, Rows
from redrived.store.database import Database
from redrived.store.log import EventRow
from redrived.store.receipts import WRITE, Receipt
from redrived.store.rows import CHUNKS, MANY, Columns, among, as_one, chunked, chunks, few, room_for
from redrived.store.tables import DUE, HELD, READY

Tally = tuple[str, str, str]  # queue, task, state, or a word of these:

# What no slot could begin now is counted in its state, and once more by what it waits for.
ASIDE: Mapping[tuple[str, str | None], str] = MappingProxyType(
    {
        (JobState.QUEUED, DUE): "scheduled",
        (JobState.QUEUED, HELD): "held",
        (JobState.RETRY, HELD): "held retry",
    }
)

Records = TypeVar("Records")

_NO_QUEUES: Mapping[str, Queue] = MappingProxyType({})

_encode = msgspec.json.Encoder().encode


def to_json(value: object) -> str:
    return _encode(value).decode()


class Landed(msgspec.Struct, frozen=True):
    """A group that is on disk: what there is to announce."""

    first_seq: int
    events: Sequence[EventRow]
    moves: dict[Tally, int]
    at: int
    made_ready: bool = False  # something can be leased that could not before
    sleeps_until: int | None = None  # the earliest instant at which something new falls due
    gate_opens_at: int | None = None  # the earliest gate whose timer has been set


class NeedsCare(Exception):
    """The short way, on which nothing is looked at first, does not do for this group."""


class Unit:
    """One group of operations on its way into one commit."""

    def __init__(
        self,
        connection: Connection,
        database: Database,
        node: str,
        now: int,
        *,
        careful: bool = False,
        queues: Mapping[str, Queue] = _NO_QUEUES,
    ) -> None:
        self.careful = careful  # the short way has failed: see `NeedsCare`
        self.connection = connection
        self.database = database
        self.node = node
        self.now = now
        self._queues = queues
        self._driver = database.driver(connection)
        self._events: list[EventRow] = []
        self._moves: list[tuple[Tally, int]] = []
        self._receipts: list[Receipt] = []
        self.has_made_ready = False
        self._sleeps_until: int | None = None
        self._gate_opens_at: int | None = None

    def rank(self, queue: str, operation: str | None) -> int:
        """The place of an operation in its queue, by the config of today."""
        return rank(self._queues, queue, operation)

    def execute(self, statement: str | Executable, **parameters: Any) -> Rows:
        """Run one statement; a string may use named parameters."""
        if not isinstance(statement, str):
            return cast("Rows", self.connection.execute(statement, parameters))
        if self._driver is not None:
            # SQLAlchemy would spend as long on it as SQLite does.
            return DriverRows(self._driver.execute(statement, parameters))
        through = self.connection.exec_driver_sql(_for_psycopg(statement), parameters)
        return cast("Rows", through)

    def over(self, rows: object, statement: str, **parameters: Any) -> Rows:
        """Run one statement over a batch of rows, given as arrays; see `Database.rows`."""
        return self.execute(statement, rows=to_json(rows), **parameters)

    def each(
        self, rows: Sequence[Sequence[Any]], columns: Columns, statement: str, **parameters: Any
    ) -> int:
        """Run a statement with `FROM {rows}` over rows that have nothing to do with each other.

        Answers how many rows of its table it changed.
        """
        if not rows:
            return 0
        if self._driver is None:
            one = statement.replace("{rows}", self.database.rows(*columns))
            return self.over(rows, one, **parameters).rowcount
        if len(rows) >= MANY:
            return self.each_of(list(zip(*rows, strict=True)), columns, statement, **parameters)
        size = room_for(len(rows))
        by_chunk = few(statement, columns, size)
        values = [value for row in rows for value in row]
        values += [None] * ((size - len(rows)) * len(columns))
        return self._driver.execute(by_chunk.text, by_chunk.around(values, parameters)).rowcount

    def each_of(
        self, values: Sequence[Sequence[Any]], columns: Columns, statement: str, **parameters: Any
    ) -> int:
        """The same for rows that are given column by column."""
        if self._driver is None or len(values[0]) < MANY:
            return self.each(list(zip(*values, strict=True)), columns, statement, **parameters)
        done = changed = 0
        for chunk in chunks(values):
            by_chunk = chunked(statement, columns, chunk.size, chunk.varying)
            sent = by_chunk.around(chunk.values, parameters)
            changed += self._driver.execute(by_chunk.text, sent).rowcount
            done += chunk.size
        left = list(zip(*(column[done:] for column in values), strict=True))
        return changed + self.each(left, columns, statement, **parameters)

    def among(self, ids: Sequence[int], statement: str, **parameters: Any) -> None:
        """Run a statement with `IN {ids}` over rows that have nothing to do with each other."""
        if self._driver is None:
            self.execute(statement.replace("IN {ids}", "= ANY(:ids)"), ids=list(ids), **parameters)
            return
        for done in range(0, len(ids), CHUNKS[0]):
            some = list(ids[done : done + CHUNKS[0]])
            some += some[-1:] * (room_for(len(some)) - len(some))  # named twice, it is still one
            by_chunk = among(statement, len(some))
            self._driver.execute(by_chunk.text, by_chunk.around(some, parameters))

    def fetch(
        self, rows: msgspec.json.Decoder[Records], columns: Sequence[str], rest: str, **named: Any
    ) -> Records:
        """Many rows of a question, in its order."""
        if self.database.is_sqlite:
            text = self.execute(as_one(columns, rest), **named).scalar()
            return rows.decode(f"[{text or ''}]")
        # The driver's own rows, all at once: through SQLAlchemy each would be fetched by itself.
        question = _for_psycopg(f"SELECT {', '.join(columns)} {rest}")
        cursor = self.connection.exec_driver_sql(question, named).cursor
        return msgspec.convert(cursor.fetchall() if cursor else [], rows.type)

    def lock(self, what: str) -> None:
        """Do this as if no other node did it at the same time."""
        self.database.lock(self.connection, what)

    def emit(
        self,
        kind: str,
        *,
        at: int | None = None,
        job: int | None = None,
        run: int | None = None,
        attempt: int | None = None,
        state: str | None = None,
        attempts: int | None = None,
        data: dict[str, Any] | None = None,
    ) -> None:
        """Say that something happened; it is logged if, and only if, this unit commits."""
        written = to_json(data) if data else None
        self._events.append(
            (self.now if at is None else at, kind, job, run, attempt, state, attempts, written)
        )

    def emit_all(self, events: Sequence[EventRow]) -> None:
        self._events.extend(events)

    def moved(
        self,
        queue: str,
        task: str,
        before: JobState | str | None,
        after: JobState | str | None,
        n: int = 1,
    ) -> None:
        """Count `n` jobs out of one state and into another; None is outside the store."""
        if before is not None:
            self._moves.append(((queue, task, str(before)), -n))
        if after is not None:
            self._moves.append(((queue, task, str(after)), n))

    def waiting(self, queue: str, task: str, state: str, waits: str | None, n: int = 1) -> None:
        """Count `n` jobs more, or fewer, that wait like this; only some waits are counted."""
        word = ASIDE.get((state, waits))
        if word is not None:
            self._moves.append(((queue, task, word), n))

    def carried_out(self, receipt: Receipt) -> None:
        """Say that a request has been; whoever asks for its fate after a crash is told."""
        self._receipts.append(receipt)

    def made_ready(self) -> None:
        """Say that something can be leased now; the dispatcher looks once this has landed."""
        self.has_made_ready = True

    def waits(self, available_at: int) -> str:
        """What a job waits for that is available at an instant; whoever must know is told."""
        if available_at <= self.now:
            self.has_made_ready = True
            return READY
        if self._sleeps_until is None or available_at < self._sleeps_until:
            self._sleeps_until = available_at
        return DUE

    def gate_opens(self, instant: int) -> None:
        """Say that the timer of a batch's gate has been set."""
        self._gate_opens_at = min(instant, self._gate_opens_at or instant)

    def next_ids(self, counter: str, n: int) -> range:
        """`n` numbers that nobody else gets."""
        last = self.execute(_TAKE, name=counter, n=n).scalar()
        return range(last - n + 1, last + 1)

    def mark(self) -> tuple[int, int]:
        return len(self._events), len(self._moves)

    def forget_since(self, mark: tuple[int, int]) -> None:
        """Unsay what an operation that failed has said."""
        del self._events[mark[0] :]
        del self._moves[mark[1] :]

    def flush(self) -> Landed:
        """Write the log lines and the counts of everything done so far."""
        moves: Counter[Tally] = Counter()
        for tally, n in self._moves:
            moves[tally] += n
        changed = {tally: n for tally, n in moves.items() if n}
        if changed:
            rows = [(*tally, n) for tally, n in sorted(changed.items())]
            self.each(rows, _COUNT_COLUMNS, _COUNT, node=self.node)
        if self._receipts:
            self.execute(WRITE, at=self.now, requests=to_json(self._receipts))
        first = 0
        if self._events:
            # Last of all: on PostgreSQL this row is what nodes queue for until they commit.
            first = self.next_ids("seq", len(self._events)).start
            log.write(self, first, self._events)
        return Landed(
            first,
            self._events,
            changed,
            self.now,
            self.has_made_ready,
            self._sleeps_until,
            self._gate_opens_at,
        )


_COUNT_COLUMNS = ("queue", "task", "state", "change bigint")
_COUNT = (
    "INSERT INTO tallies (node, queue, task, state, n)"
    " SELECT :node, r.queue, r.task, r.state, r.change FROM {rows} WHERE true"
    " ON CONFLICT (node, queue, task, state) DO UPDATE SET n = tallies.n + excluded.n"
)
_TAKE = "UPDATE counters SET value = value + :n WHERE name = :name RETURNING value"
_NAMED = re.compile(r"(?<!:):([a-z_]\w*)")


@lru_cache(maxsize=512)
def _for_psycopg(statement: str) -> str:
    return _NAMED.sub(r"%(\1)s", statement.replace("%", "%%"))
