"""On PostgreSQL, what was planned while tables were small is still good when they have grown."""

from __future__ import annotations

import pytest
from sqlalchemy import text

from redrived.store.beats import Beat, beat
from support.ground import Ground
from support.runs import Track, step

ROUNDS = 12  # after some of them, the server has made a plan to keep
GROWTH = 5_000  # runs, each with a job

pytestmark = pytest.mark.parametrize("database", ["postgresql"], indirect=True)


@pytest.fixture
def track(ground: Ground) -> Track:
    return Track(ground, step("first"), step("second"))


@pytest.mark.parametrize("analysed", [True, False])
def test_a_table_that_has_grown_is_not_read_whole_as_when_it_was_small(
    track: Track, analysed: bool
) -> None:
    live(track)
    if analysed:
        with track.ground.database.writers.connect() as connection, connection.begin():
            connection.execute(text("ANALYZE"))
        live(track)
    track.start_many(GROWTH)
    rows_read = "sum(seq_tup_read + idx_tup_fetch) FROM pg_stat_user_tables"
    before = counted(track.ground, rows_read)
    live(track)
    assert counted(track.ground, rows_read) - before < GROWTH


def test_an_attempt_finds_its_job_by_the_id_and_not_among_all_that_is_leased(track: Track) -> None:
    track.start_many(GROWTH)
    live(track)
    scans = "sum(idx_scan) FROM pg_stat_user_indexes WHERE indexrelname"
    assert counted(track.ground, f"{scans} IN ('jobs_leased', 'jobs_live')") == 0


def live(track: Track) -> None:
    for _ in range(ROUNDS):
        track.start_many(4)
        done, failed, *rest = track.ground.take(4)
        track.ground.do(beat, Beat(done.id, done.lease, 1))
        track.fail_job(failed)
        track.complete([done, *rest])


def counted(ground: Ground, what: str) -> int:
    """A figure of the server's own statistics, with all that was done until now."""
    with ground.database.writers.connect() as connection:
        connection.execute(text("SELECT pg_stat_force_next_flush()"))
        connection.commit()
        return int(connection.execute(text(f"SELECT {what}")).scalar_one())
