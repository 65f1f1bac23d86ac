"""Whatever rows have in common, what arrives is what was sent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import text

from redrived.store import log
from redrived.store.enqueue import NewJob
from redrived.store.log import EventRow
from redrived.store.unit import Unit
from support.ground import Ground

MANY = 600  # rows: a chunk of every size

# Few values, so that columns are often the same throughout, or nearly.
SAID = st.sampled_from([None, "", "a", "b", "0", "null", "'\"\\%s :name {rows}\n"])
NUMBERS = st.sampled_from([None, 0, 1, -1, 2**53 + 1])
DATA = st.sampled_from([None, '{"by":"ann"}', '{"by":"ben"}', '{"n":1}', '{"n":2}'])


@st.composite
def many_events(draw: st.DrawFn) -> list[EventRow]:
    """A pattern that goes on for many lines, with an odd one somewhere."""
    line = st.tuples(
        st.integers(0, 2**53),
        st.sampled_from(["step_started", "action_started", "action_completed"]),
        NUMBERS,
        NUMBERS,
        st.sampled_from([None, 1, 2]),
        SAID,
        st.sampled_from([None, 0, 1]),
        DATA,
    )
    pattern = draw(st.lists(line, min_size=1, max_size=6))
    events = [pattern[i % len(pattern)] for i in range(draw(st.sampled_from([1, 9, 70, MANY])))]
    events[draw(st.integers(0, len(events) - 1))] = draw(line)
    return events


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(events=many_events())
def test_lines_of_the_log_are_written_as_they_were_said(
    ground: Ground, events: list[EventRow]
) -> None:
    with ground.database.writers.connect() as connection, connection.begin() as transaction:
        unit = Unit(connection, ground.database, "n1", 0)
        log.write(unit, 5, events)
        found = unit.execute(
            "SELECT seq, at, type, job, run, attempt, state, attempts, data"
            " FROM events ORDER BY seq"
        ).all()
        transaction.rollback()

    assert [tuple(row) for row in found] == [(seq, *e) for seq, e in enumerate(events, 5)]


VALUES = st.one_of(
    st.none(), st.sampled_from(["", "x", "1", "true", "{}"]), st.text("aé\U0001f600", max_size=3)
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(pattern=st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4), odd=VALUES)
def test_rows_of_a_statement_arrive_as_they_were_sent(
    ground: Ground, pattern: list[tuple[str | None, str | None]], odd: str | None
) -> None:
    rows: list[tuple[Any, ...]] = [(i, *pattern[i % len(pattern)]) for i in range(1, MANY)]
    rows[MANY // 2] = (MANY // 2 + 1, odd, odd)

    with ground.database.writers.connect() as connection, connection.begin() as transaction:
        unit = Unit(connection, ground.database, "n1", 0)
        changed = unit.each(
            rows,
            ("seq bigint", "type", "data"),
            "INSERT INTO events (seq, at, type, state, data)"
            " SELECT r.seq, :at, :kind, r.type, r.data FROM {rows} WHERE r.seq > :first",
            at=7,
            kind="step_started",
            first=1,
        )
        found = unit.execute("SELECT seq, at, type, state, data FROM events ORDER BY seq").all()
        transaction.rollback()

    assert changed == len(rows) - 1
    assert [tuple(row) for row in found] == [
        (seq, 7, "step_started", state, data) for seq, state, data in rows[1:]
    ]


def test_what_rows_have_in_common_travels_once(ground: Ground) -> None:
    if not ground.database.is_sqlite:
        return
    sent: list[int] = []
    with ground.database.writers.connect() as connection, connection.begin():
        driver = ground.database.driver(connection)
        assert driver is not None
        driver.set_trace_callback(lambda statement: sent.append(len(statement)))
        unit = Unit(connection, ground.database, "n1", 0)
        event = (1, "step_started", 1, None, None, "queued", 0, json.dumps({"by": "a" * 5_000}))
        log.write(unit, 1, [event] * 512)
        connection.execute(text("SELECT 1"))
        driver.set_trace_callback(None)

    assert sum(sent) < 512 * 100


def test_ids_are_found_however_many_there_are(ground: Ground) -> None:
    placed = ground.add(*[NewJob(task="work", queue="default")] * MANY)
    ids = [place.id for place in placed]

    def mark(unit: Unit, items: Sequence[list[int]]) -> list[None]:
        for item in items:
            unit.among(item, "UPDATE jobs SET step = :step WHERE id IN {ids}", step="a:b")
        return [None] * len(items)

    ground.do(mark, ids[1:])
    ground.do(mark, [])

    assert ground.job(ids[0]).step is None
    assert {ground.job(id).step for id in ids[1::50]} == {"a:b"}
