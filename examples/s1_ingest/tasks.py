"""The two steps of an ingestion."""

import time
from contextlib import contextmanager

import archives
import database
import stanzas
import storage

import redrive


def store(path):
    """Put the upload where every later attempt finds it."""
    with measured(redrive.current_job()):
        return {"archive": storage.put(path)}


def parse(archive):
    """Every stanza of every .conf file in the archive into the database."""
    job = redrive.current_job()
    with measured(job), database.opened() as db:
        if (counts := db.completed(job.run)) is not None:
            tell(job, counts)
            return {"status": "already_completed"}
        with archives.opened(storage.get(archive)) as files:
            counts = {"files_parsed": 0, "stanzas_created": 0, "parse_errors": 0}
            for source_path, read in files:
                job.heartbeat()  # written when the last one is 30 s old
                parse_file(job, db, source_path, read().decode("utf-8", "replace"), counts)
        total = db.count(job.run)
        if not total:
            raise stanzas.InvalidFormat(f"invalid format: no stanza in {len(files)} files")
        db.complete(job.run, counts)
        tell(job, counts)
        return {"status": "completed", "stanzas": total}


def parse_file(job, db, source_path, text, counts):
    found, errors = stanzas.parse(text)
    for error in errors:
        job.log.warning("%s, %s", source_path, error)
    counts["files_parsed"] += 1
    counts["parse_errors"] += len(errors)
    counts["stanzas_created"] += db.add(job.run, source_path, found)


def tell(job, counts):
    for name, count in counts.items():
        job.metric(name, count)


@contextmanager
def measured(job):
    """What an attempt took, and what it failed with, whichever way it ends."""
    began = time.monotonic()
    job.metric("retry_count", job.attempt - 1)
    try:
        yield
    except Exception as error:
        job.metric("error_type", type(error).__name__)
        raise
    finally:
        job.metric("duration_seconds", round(time.monotonic() - began, 3))
