"""Ingestion of configuration archives into a real database."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Generator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest

from redrive.blocking import Client
from redrive.instants import SECOND
from redrive.models import Job
from redrive.protocol.commands import PauseIt, ResumeIt
from support.daemon import eventually
from support.examples import (
    Example,
    MakeExample,
    check_that_no_retry_was_early,
    delays,
    story,
    wait_for_retry,
)
from support.interpreters import bare_venv

QUICK = {"FIRST_DELAY": "0.2", "SECOND_DELAY": "0.2", "THIRD_DELAY": "0.2"}

REFUSED = {
    "corrupt.zip": "malformed_archive",
    "corrupt.tar.gz": "malformed_archive",
    "none.zip": "malformed_archive",
    "empty.zip": "empty_archive",
    "prose.zip": "invalid_format",
    "climbing.zip": "hostile_archive",
    "absolute.tar": "hostile_archive",
    "linked.tar": "hostile_archive",
    "bomb.zip": "hostile_archive",
    "bomb.tar.gz": "hostile_archive",
}

OF_FAILURE = {"duration_seconds", "retry_count", "error_type"}
OF_SUCCESS = {
    "files_parsed",
    "stanzas_created",
    "duration_seconds",
    "parse_errors",
    "retry_count",
}

# The database goes away in the middle of an archive.
TROUBLE = """
CREATE TRIGGER trouble BEFORE INSERT ON stanzas WHEN NEW.file = '010.conf'
BEGIN SELECT RAISE(ABORT, 'connection refused'); END
"""

# When each stanza was made.
CLOCK = """
CREATE TABLE clock (at REAL);
CREATE TRIGGER clock AFTER INSERT ON stanzas
BEGIN INSERT INTO clock VALUES ((julianday('now') - 2440587.5) * 86400); END
"""


def ingesting(example: MakeExample, **env: str) -> Example:
    """The example at some free port, with everything to upload."""
    ingestion = example("s1_ingest", LISTEN="127.0.0.1:0", **env)
    ingestion.make("make_archives.py")
    return ingestion


def ingest(client: Client, upload: str) -> str:
    return client.start("ingest", {"path": f"data/uploads/{upload}"}).first_id


def job_of(client: Client, run: str, step: str) -> Job:
    """The present job of a step, once it has one."""

    def job() -> int | None:
        return next(each.job for each in client.run(run).steps if each.name == step)

    return client.job(eventually(job, f"{step} of {run} has a job") or 0)


def database(example: Example) -> sqlite3.Connection:
    return sqlite3.connect(example.folder / "data" / "stanzas.db", timeout=30, isolation_level=None)


def stanzas(example: Example) -> int:
    with closing(database(example)) as db:
        count: int = db.execute("SELECT count(*) FROM stanzas").fetchone()[0]
    return count


@contextmanager
def locked(example: Example) -> Generator[None]:
    """Nobody else reads or writes the database meanwhile."""
    with closing(database(example)) as db:
        db.execute("BEGIN EXCLUSIVE")
        yield


def test_every_kind_of_archive_becomes_stanzas_and_metrics(example: MakeExample) -> None:
    ingestion = ingesting(example)
    with ingestion.client() as client:
        uploads = ("good.zip", "good.tar", "good.tar.gz", "flawed.zip")
        runs = {upload: ingest(client, upload) for upload in uploads}
        assert set(client.wait(*runs.values()).values()) == {"done"}
        for upload, run in runs.items():
            metrics = client.run(run).metrics or {}
            duration = metrics.pop("duration_seconds")
            assert isinstance(duration, float)
            flawed = upload == "flawed.zip"
            assert metrics == {
                "files_parsed": 20 + flawed,
                "stanzas_created": 100 + 2 * flawed,
                "parse_errors": int(flawed),
                "retry_count": 0,
            }
    assert stanzas(ingestion) == 402


def test_an_interpreter_with_nothing_installed_runs_the_handlers(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "venv")
    ingestion = Example("s1_ingest", tmp_path, LISTEN="127.0.0.1:0")
    pool = f'[pools.default]\npython = "{python}"\n'
    ingestion.config.write_text(ingestion.config.read_text().replace("[pools.default]\n", pool))
    assert pool in ingestion.config.read_text()
    ingestion.make("make_archives.py")
    try:
        with ingestion.start().client() as client:
            good, corrupt = ingest(client, "good.zip"), ingest(client, "corrupt.zip")
            client.wait(good, corrupt)
            assert (client.run(good).status, stanzas(ingestion)) == ("COMPLETE", 100)
            assert client.run(corrupt).status == "FAILED"
            error = job_of(client, corrupt, "parse").error
            assert error is not None
            assert (error.error_type, error.category) == ("malformed_archive", "permanent")
    finally:
        ingestion.end()


def test_what_never_gets_better_fails_at_once_and_keeps_its_traceback(example: MakeExample) -> None:
    ingestion = ingesting(example)
    with ingestion.client() as client:
        runs = {upload: ingest(client, upload) for upload in REFUSED}
        client.wait(*runs.values())
        seen = {}
        for upload, run in runs.items():
            job = job_of(client, run, "parse")
            assert job.error is not None
            seen[upload] = job.error.error_type
            assert (job.state, job.reason, job.attempts) == ("dead", "permanent", 1)
            assert "Traceback" in (job.error.traceback or "")
            assert client.run(run).status == "FAILED"
            assert {*(job.metrics or {})} == {*(client.run(run).metrics or {})} == OF_FAILURE
        assert seen == REFUSED
    assert stanzas(ingestion) == 0


def test_storage_that_is_away_is_retried_after_60_180_and_600_seconds(example: MakeExample) -> None:
    ingestion = ingesting(example)
    (ingestion.folder / "storage").rename(ingestion.folder / "away")
    with ingestion.client() as client:
        run = ingest(client, "good.zip")
        job = job_of(client, run, "store").id
        for attempt in (1, 2, 3):
            wait_for_retry(client, job, attempt)
            client.act("run-now", str(job))
        assert client.wait(run) == {run: "failed"}
        assert delays(story(client, job)) == [60.0, 180.0, 600.0]
        dead = client.job(job)
        assert (dead.reason, dead.attempts, client.run(run).status) == ("exhausted", 4, "FAILED")
        assert dead.error is not None
        assert dead.error.error_type == "storage_unavailable"
        status = got(f"{worker(ingestion)}/runs/{run}/status")
        assert (status["status"], status["retry_count"]) == ("FAILED", 3)
        assert status["error_message"].startswith("max retries exhausted: storage unavailable")
        assert status["metrics"].keys() == OF_FAILURE
        assert "max retries exhausted" in ingestion.run("why", str(job)).stdout
        (ingestion.folder / "away").rename(ingestion.folder / "storage")
        client.act("requeue", run)
        assert client.wait(run) == {run: "done"}
        assert (client.run(run).metrics or {}).keys() == OF_SUCCESS


def test_a_run_shows_where_it_is(example: MakeExample) -> None:
    ingestion = ingesting(example, **QUICK)
    with ingestion.client() as client:
        client.wait(ingest(client, "good.zip"))  # makes the database

        def shows(status: str) -> None:
            eventually(lambda: client.run(run).status == status, status)

        for task in ("store", "parse"):
            client.ask(PauseIt(name=f"task:{task}"))
        run = ingest(client, "good.tar")
        shows("PENDING")
        client.ask(ResumeIt(name="task:store"))
        shows("STORED")
        with locked(ingestion):
            client.ask(ResumeIt(name="task:parse"))
            shows("PARSING")
            job = job_of(client, run, "parse")
            assert job.started_at is not None
            assert job.heartbeat_at == job.started_at
        shows("COMPLETE")


def test_a_locked_database_is_waited_for_and_retried(example: MakeExample) -> None:
    ingestion = ingesting(example, **QUICK)
    with ingestion.client() as client:
        client.wait(ingest(client, "good.zip"))
        with locked(ingestion):
            run = ingest(client, "good.tar")
            job = job_of(client, run, "parse").id
            wait_for_retry(client, job, 1)
        assert client.wait(run) == {run: "done"}
        events = story(client, job)
        errors = [event.data["error"] for event in events if event.type == "action_error"]
        assert {error["error_type"] for error in errors} == {"database_error"}
        metrics = client.run(run).metrics or {}
        assert {*metrics} == OF_SUCCESS
        assert metrics["retry_count"] == 1
        check_that_no_retry_was_early(events)


@pytest.mark.parametrize("every", ["30s", "1ms"])
def test_between_files_a_beat_is_written_only_when_the_last_is_old(
    example: MakeExample, every: str
) -> None:
    ingestion = ingesting(example, BEAT_EVERY=every)
    with ingestion.client() as client:
        client.wait(ingest(client, "empty.zip"))  # makes the database
        with closing(database(ingestion)) as db:
            db.executescript(CLOCK)
        run = ingest(client, "large.zip")
        client.wait(run)
        beat = job_of(client, run, "parse").heartbeat_at
        assert beat is not None
    with closing(database(ingestion)) as db:
        first, last = db.execute("SELECT min(at), max(at) FROM clock").fetchone()
    if every == "30s":
        assert beat / SECOND < last  # the first one, and none since
    else:
        assert beat / SECOND > first


def test_a_run_that_is_complete_is_not_parsed_again(example: MakeExample) -> None:
    ingestion = ingesting(example)
    with ingestion.client() as client:
        run = ingest(client, "good.zip")
        client.wait(run)
        client.act("requeue", run, from_step="parse")
        assert client.wait(run) == {run: "done"}
        assert job_of(client, run, "parse").result == {"status": "already_completed"}
        assert (client.run(run).metrics or {}).keys() == OF_SUCCESS
    assert stanzas(ingestion) == 100


def test_runs_are_asked_for_over_http(example: MakeExample) -> None:
    ingestion = ingesting(example)
    with ingestion.client() as client:
        good, bad = ingest(client, "good.zip"), ingest(client, "none.zip")
        client.wait(good, bad)
    status = got(f"{worker(ingestion)}/runs/{good}/status")
    assert (status["status"], status["retry_count"], status["error_message"]) == (
        "COMPLETE",
        0,
        None,
    )
    assert status["metrics"]["stanzas_created"] == 100
    failed = got(f"{worker(ingestion)}/runs/{bad}/status")
    assert failed["status"] == "FAILED"
    assert "malformed archive" in failed["error_message"]
    assert "Traceback" in failed["error_traceback"]
    assert failed["metrics"]["error_type"] == "MalformedArchive"
    assert None not in failed["timestamps"].values()
    metrics = got(f"{worker(ingestion)}/metrics")
    assert metrics["status_counts"] == {"COMPLETE": 1, "FAILED": 1}
    assert {*metrics} == {"status_counts", "retry_stats", "avg_duration", "recent_failures"}
    assert [run["run_id"] for run in metrics["recent_failures"]] == [bad]


def worker(ingestion: Example) -> str:
    return f"{ingestion.log.read_text().partition('listening on ')[2].split()[0]}/v1/worker"


def got(url: str) -> Any:
    with urlopen(url, timeout=10) as answer:
        return json.loads(answer.read())


def test_a_daemon_killed_while_it_parses_makes_no_stanza_twice(example: MakeExample) -> None:
    ingestion = ingesting(example, SECOND_DELAY="0.2")
    with ingestion.client() as client:
        client.wait(ingest(client, "empty.zip"))  # makes the database
        with closing(database(ingestion)) as db:
            db.execute(TROUBLE)
            run = ingest(client, "good.zip")
            job = job_of(client, run, "parse").id
            wait_for_retry(client, job, 1)
            assert stanzas(ingestion) == 50  # half of them
            db.execute("BEGIN EXCLUSIVE")
            db.execute("DROP TRIGGER trouble")
            client.act("run-now", str(job))
            eventually(lambda: client.job(job).attempts == 2, "it parses again")
            ingestion.kill()
            db.execute("COMMIT")
    ingestion.start()
    with ingestion.client() as client:
        assert client.wait(run) == {run: "done"}
        parse = job_of(client, run, "parse")
        assert (parse.attempts, client.run(run).status) == (3, "COMPLETE")
        assert (parse.metrics or {})["stanzas_created"] == 50
    with closing(database(ingestion)) as db:
        query = "SELECT count(*), count(DISTINCT name || source_path) FROM stanzas WHERE run = ?"
        assert db.execute(query, [run]).fetchone() == (100, 100)
