"""What must be true of a store at every instant, whatever happened to it."""

from __future__ import annotations

from collections import Counter, defaultdict
from typing import Any

from sqlalchemy import text

from redrive.history import fold_state
from redrive.lifecycle import FINISHED, WAITING, JobState
from redrive.models import Event
from redrived.store import events, tallies
from support.ground import Ground

_JOB = (
    "SELECT id, queue, task, state, waits, attempts, max_attempts, lease, node, leased_from,"
    " started_at, finished_at, unique_key, limit_key FROM jobs ORDER BY id"
)


def check(ground: Ground) -> None:
    """Look at one snapshot of everything."""
    with ground.database.readers.connect() as connection:
        rows = [dict(row) for row in connection.execute(text(_JOB)).mappings()]
        log = events.after(connection, 0, 1_000_000)
        counts, aside = tallies.read_with_waits(connection)
        head = events.head(connection)
        last = connection.execute(
            text("SELECT value FROM counters WHERE name = 'job'")
        ).scalar_one()
    _rows_make_sense(rows)
    _counts_are_right(rows, counts, aside)
    _states_are_the_fold_of_their_events(rows, log)
    assert not log or log[-1].seq == head
    assert max((row["id"] for row in rows), default=0) <= last


def _rows_make_sense(rows: list[dict[str, Any]]) -> None:
    held_keys = {row["limit_key"] for row in rows if row["state"] == JobState.LEASED}
    ready_keys = {row["limit_key"] for row in rows if row["waits"] == "ready"}
    for row in rows:
        state = JobState(row["state"])
        assert row["attempts"] <= row["max_attempts"], row
        assert (row["waits"] is not None) == (state in WAITING), row
        if state in WAITING:
            assert row["waits"] in {"ready", "due", "key", "held"}, row
        if state is JobState.LEASED:
            assert row["node"], row
            assert row["lease"] > 0, row
        assert (row["finished_at"] is not None) == (state in FINISHED), row
        if row["waits"] == "key":
            assert row["limit_key"] in held_keys | ready_keys, f"nothing will free its key: {row}"
    keys = Counter(
        row["unique_key"]
        for row in rows
        if row["unique_key"] is not None and row["state"] not in FINISHED
    )
    assert all(n == 1 for n in keys.values()), keys


def _counts_are_right(
    rows: list[dict[str, Any]], counts: tallies.Counts, aside: tallies.Counts
) -> None:
    words = {
        ("queued", "due"): "scheduled",
        ("queued", "held"): "held",
        ("retry", "held"): "held retry",
    }
    real: tallies.Counts = {}
    real_aside: tallies.Counts = {}
    for row in rows:
        _count(real, row, row["state"])
        if (word := words.get((row["state"], row["waits"]))) is not None:
            _count(real_aside, row, word)
    assert counts == real
    assert aside == real_aside


def _count(counts: tallies.Counts, row: dict[str, Any], word: str) -> None:
    words = counts.setdefault(row["queue"], {}).setdefault(row["task"], {})
    words[word] = words.get(word, 0) + 1


def _states_are_the_fold_of_their_events(rows: list[dict[str, Any]], log: list[Event]) -> None:
    of_job: dict[int, list[Event]] = defaultdict(list)
    for event in log:
        if event.job is not None:
            of_job[event.job].append(event)
    for row in rows:
        told = fold_state(of_job.pop(row["id"], []))
        if row["state"] == JobState.LEASED and row["started_at"] is None:
            # In hand and not begun: the log still has what it was leased from.
            assert told == (JobState(row["leased_from"]), row["attempts"] - 1), row
        else:
            assert told == (JobState(row["state"]), row["attempts"]), row
    assert not of_job, f"events of jobs that are gone: {sorted(of_job)}"


def check_log(ground: Ground) -> None:
    """What was announced is what is written: dense, in order, less the jobs discarded since."""
    announced: dict[int, Event] = {}
    expected = 1
    for landed in ground.landed:
        for event in events.announced(landed):
            assert event.seq == expected
            announced[event.seq] = event
            expected += 1
    written = {event.seq: event for event in ground.events()}
    discarded = {event.data["id"] for event in announced.values() if event.type == "job_discarded"}
    kept = {seq: e for seq, e in announced.items() if e.job is None or e.job not in discarded}
    assert written == kept
