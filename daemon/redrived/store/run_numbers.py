"""What all runs together come to: how many of each, how often tried, how long."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct
from sqlalchemy import Connection, text

from redrive.clock import SECOND
from redrive.models import Run
from redrive.pipelines.states import RunState
from redrived.store import run_pages

MOST_RUNNING = 1_000  # runs under way whose words are looked at one by one
RECENT = 10


class RunNumbers(Struct, frozen=True, kw_only=True):
    status_counts: dict[str, int]
    total_retries: int
    runs_retried: int
    most_retries: int
    avg_duration: float | None  # seconds, of runs that are done
    recent_failures: list[Run]


def look(connection: Connection) -> RunNumbers:
    retried, total, most = connection.execute(_RETRIES).one()
    average = connection.execute(_DURATION).scalar_one()
    return RunNumbers(
        status_counts=_status_counts(connection),
        total_retries=int(total or 0),
        runs_retried=int(retried),
        most_retries=int(most or 0),
        avg_duration=None if average is None else float(average) / SECOND,
        recent_failures=run_pages.in_state(connection, RunState.FAILED, RECENT),
    )


def _status_counts(connection: Connection) -> dict[str, int]:
    """By the words that runs show; those that have ended alike show the same word."""
    counts: Counter[str] = Counter()
    for n, sample in connection.execute(_ENDED).all():
        if (run := run_pages.get(connection, sample)) is not None:
            counts[run.status] += n
    running = run_pages.in_state(connection, RunState.RUNNING, MOST_RUNNING)
    counts.update(run.status for run in running)
    return dict(counts)


_ENDED = text(
    "SELECT count(*), max(id) FROM ("
    " SELECT runs.id, pipeline, version, runs.state, last_completed,"
    " (SELECT min(place) FROM steps WHERE run_id = runs.id"
    "  AND steps.state IN ('dead', 'cancelled')) AS broken"
    " FROM runs WHERE runs.state <> 'running') AS ended"
    " GROUP BY pipeline, version, state, last_completed, broken"
)
_RETRIES = text(
    "SELECT count(DISTINCT run_id), sum(attempts - 1), max(attempts - 1) FROM jobs"
    " WHERE run_id IS NOT NULL AND attempts > 1"
)
_DURATION = text("SELECT avg(finished_at - created_at) FROM runs WHERE state = 'done'")
