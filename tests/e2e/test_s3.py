"""Documents in stages: what is done stays done, and only what failed is made again."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import Any

from redrive.blocking import Client
from redrive.models import Run
from redrive.protocol.commands import Outcome
from redrive.protocol.queries import Why
from support.daemon import eventually
from support.examples import (
    Example,
    MakeExample,
    check_that_no_retry_was_early,
    delays,
    story,
    wait_for_retry,
)

HARBOUR = "documents/harbour.txt"
QUICK = {"FIRST_DELAY": "0.2", "SECOND_DELAY": "0.2", "THIRD_DELAY": "0.2"}

# Stands for a service that fails in the middle of a document.
TROUBLE = """
CREATE TRIGGER trouble BEFORE INSERT ON vectors WHEN NEW.place = 1
BEGIN SELECT RAISE(ABORT, 'the embedding service answered 503'); END
"""


def process(client: Client, document: str = HARBOUR, end: str = "done") -> str:
    run = client.start("document", {"path": document}).first_id
    assert client.wait(run) == {run: end}
    return run


def database(example: Example) -> sqlite3.Connection:
    path = example.folder / "data" / "documents.db"
    return sqlite3.connect(path, timeout=30, isolation_level=None)


def rows(example: Example, query: str) -> list[Any]:
    with closing(database(example)) as db:
        return db.execute(query).fetchall()


def jobs_of(run: Run) -> list[int | None]:
    return [step.job for step in run.steps]


def requeue(client: Client, run: str, **options: Any) -> Outcome:
    return client.act("requeue", run, **options).outcomes[0]


def refused(outcome: Outcome) -> tuple[str, int]:
    assert outcome.refused is not None, f"{outcome.id} was requeued"
    return outcome.refused.code, outcome.refused.exit_code


def test_each_stage_is_a_job_and_keeps_its_data(example: MakeExample) -> None:
    documents = example("s3_documents")
    with documents.client() as client:
        process(client, "documents/orchard.md")
        process(client, "documents/lighthouse.txt")
        run = client.run(process(client))
        assert len({*jobs_of(run)}) == 3
        assert run.last_completed == "analyze"
        parsed, embedded, analyzed = (step.result for step in run.steps)
        assert parsed == {"status": "parsed", "chunks": 3}
        assert embedded == {"status": "embedded", "vectors": 3}
        assert analyzed["near"] == ["documents/lighthouse.txt", "documents/orchard.md"]
        assert analyzed["keywords"][0] == "harbour"
    for table in ("chunks", "vectors"):
        assert rows(documents, f"SELECT count(*) FROM {table}") == [(10,)]


def test_a_stage_that_is_done_is_skipped_and_the_next_enqueued(example: MakeExample) -> None:
    documents = example("s3_documents")
    with documents.client() as client:
        process(client)
        again = client.run(process(client))
        assert [step.result for step in again.steps] == [
            {"status": "skipped", "reason": "already_parsed"},
            {"status": "skipped", "reason": "already_embedded"},
            {"status": "skipped", "reason": "already_analyzed"},
        ]


def test_three_retries_come_after_5_10_and_20_seconds_and_a_fourth_never(
    example: MakeExample,
) -> None:
    documents = example("s3_documents")
    with documents.client() as client:
        process(client, "documents/orchard.md")
        rows(documents, TROUBLE)
        run = client.start("document", {"path": HARBOUR}).first_id
        job = eventually(lambda: client.run(run).steps[1].job, "embed has a job") or 0
        for attempt in (1, 2, 3):
            wait_for_retry(client, job, attempt)
            seen = f"Retrying (attempt {attempt}/3)"
            assert client.run(run).steps[1].why == seen
            assert client.ask(Why(id=str(job))).text.startswith(seen)
            assert seen in documents.run("show", str(job)).stdout
            client.act("run-now", str(job))
        assert client.wait(run) == {run: "failed"}
        assert delays(story(client, job)) == [5.0, 10.0, 20.0]
        shown = client.show_job(job)
        assert [past.attempt for past in shown.history] == [1, 2, 3, 4]
        error = shown.job.error
        assert error is not None
        assert (error.error_type, error.category) == ("service_unavailable", "transient")
        assert (error.stage, error.retry_count) == ("embed", 3)
        assert error.message == "the embedding service answered 503"
        assert error.user_message == "Processing service unavailable"
        assert error.guidance == "Requeue the job once the cause is gone."
        first = shown.history[0].error
        assert first is not None
        assert first.guidance == "Will retry automatically."
        assert client.run(run).steps[1].why == "max retries exhausted"
        assert "add_vector" in (error.traceback or "")


def test_a_requeue_resumes_at_the_failed_stage_and_clears_only_its_data(
    example: MakeExample,
) -> None:
    documents = example("s3_documents", **QUICK)
    with documents.client() as client:
        process(client, "documents/orchard.md")
        rows(documents, TROUBLE)
        run = process(client, end="failed")
        failed = client.run(run)
        assert failed.last_completed == "parse"
        half_done = f"SELECT place FROM vectors WHERE document = '{HARBOUR}'"
        chunks = f"SELECT rowid, place FROM chunks WHERE document = '{HARBOUR}'"
        assert rows(documents, half_done) == [(0,)]
        kept = rows(documents, chunks)

        rows(documents, "DROP TRIGGER trouble")
        assert requeue(client, run).done
        assert client.wait(run) == {run: "done"}
        resumed = client.run(run)
        assert resumed.steps[0].job == failed.steps[0].job
        assert resumed.steps[0].result == {"status": "parsed", "chunks": 3}
        assert rows(documents, half_done) == [(0,), (1,), (2,)]
        assert rows(documents, chunks) == kept
        cleared = [job.step for job in client.jobs("task:clear").jobs]
        assert cleared == ["embed"]


def test_an_error_that_nobody_knows_is_tried_once_more(example: MakeExample) -> None:
    documents = example("s3_documents", **QUICK)
    with documents.client() as client:
        run = client.run(process(client, "documents/numbers.txt", end="failed"))
        job = client.job(run.steps[2].job or 0)
        assert (job.attempts, job.max_attempts, job.reason) == (2, 4, "unknown")
        assert job.error is not None
        assert job.error.user_message == "An unexpected error occurred"


def test_a_permanent_error_is_requeued_only_by_force(example: MakeExample) -> None:
    documents = example("s3_documents")
    with documents.client() as client:
        run = process(client, "documents/scan.pdf", end="failed")
        job = client.job(client.run(run).steps[0].job or 0)
        assert (job.attempts, job.reason) == (1, "permanent")
        assert job.error is not None
        assert job.error.user_message == "File format not supported"
        assert job.error.guidance == "Supported formats: TXT, MD"
        assert refused(requeue(client, run)) == ("not_allowed", 77)
        assert requeue(client, run, force=True).done


def test_a_second_requeue_by_hand_waits_for_the_cooldown(example: MakeExample) -> None:
    documents = example("s3_documents", **QUICK)
    with documents.client() as client:
        run = process(client, "documents/numbers.txt", end="failed")
        assert requeue(client, run).done
        client.wait(run)
        second = requeue(client, run)
        assert refused(second) == ("try_later", 75)
        assert second.refused is not None
        assert 0 < (second.refused.retry_after or 0) <= 60


def test_nobody_requeues_a_sixth_time(example: MakeExample) -> None:
    documents = example("s3_documents", COOLDOWN="0", **QUICK)
    with documents.client() as client:
        run = process(client, "documents/numbers.txt", end="failed")
        for _ in range(5):
            assert requeue(client, run).done
            client.wait(run)
        assert refused(requeue(client, run)) == ("not_allowed", 77)


def test_what_would_be_made_again_is_asked_for_first(example: MakeExample) -> None:
    documents = example("s3_documents")
    with documents.client() as client:
        run = process(client)
        assert refused(requeue(client, run)) == ("partial_results", 77)
        assert requeue(client, run, again=True).done
        assert client.wait(run) == {run: "done"}
        assert client.run(run).steps[0].result == {"status": "parsed", "chunks": 3}


def test_a_daemon_killed_in_a_stage_repeats_that_stage_alone(example: MakeExample) -> None:
    documents = example("s3_documents", SECOND_DELAY="0.2")
    with documents.client() as client:
        process(client, "documents/orchard.md")
        rows(documents, TROUBLE)
        run = client.start("document", {"path": HARBOUR}).first_id
        job = eventually(lambda: client.run(run).steps[1].job, "embed has a job") or 0
        wait_for_retry(client, job, 1)
        before = client.run(run)
        with closing(database(documents)) as db:
            db.execute("BEGIN EXCLUSIVE")
            db.execute("DROP TRIGGER trouble")
            client.act("run-now", str(job))
            eventually(lambda: client.job(job).attempts == 2, "it embeds again")
            documents.kill()
            db.execute("COMMIT")
    documents.start()
    with documents.client() as client:
        assert client.wait(run) == {run: "done"}
        after = client.run(run)
        assert jobs_of(after)[:2] == jobs_of(before)[:2]
        assert [(step.state, step.attempts) for step in after.steps] == [
            ("done", 1),
            ("done", 3),
            ("done", 1),
        ]
        check_that_no_retry_was_early(story(client, job)[-4:])
    counted = f"SELECT count(*) FROM vectors WHERE document = '{HARBOUR}'"
    assert rows(documents, counted) == [(3,)]
