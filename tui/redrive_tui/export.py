"""What is listed, as a file: for spreadsheets, for programs, for the ticket."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Iterable
from pathlib import Path

import msgspec

from redrive.clock import to_datetime
from redrive.models import Job, plain
from redrive_tui.formatting import count, plural
from redrive_tui.job_list import JobList
from redrive_tui.job_pages import PAGE
from redrive_tui.source import Source

FORMATS = {"csv, for a spreadsheet": "csv", "jsonl, one job per line": "jsonl"}
FIELDS = [
    "id",
    "task",
    "queue",
    "state",
    "reason",
    "attempts",
    "max_attempts",
    "created_at",
    "available_at",
    "started_at",
    "finished_at",
    "node",
    "run",
    "step",
    "batch",
]
MOST = 100_000  # jobs in one file
# A spreadsheet runs what begins like this as a formula, and task names come from outside.
FORMULA = ("=", "+", "-", "@", "\t", "\r")


async def export(source: Source, which: JobList, kind: str, now: int) -> str:
    """Write the list to a file in the working directory; says what was written where."""
    jobs: list[Job] = []
    total = 0
    while len(jobs) < MOST:
        page = await which.page(source, len(jobs) // PAGE)
        jobs += page.jobs
        total = max(total, page.total or 0)
        if len(page.jobs) < PAGE:
            break
    text = heading() + as_csv(jobs) if kind == "csv" else as_jsonl(jobs)
    path = Path.cwd() / f"redrive-jobs-{to_datetime(now):%Y%m%d-%H%M%S}.{kind}"
    await asyncio.to_thread(_write, path, text)
    written = plural(len(jobs), "job")
    if len(jobs) == MOST < total:
        written = f"the first {count(MOST)} of {count(total)} jobs"
    return f"{written} written to {path}"


def _write(path: Path, text: str) -> None:
    with path.open("x", encoding="utf-8", newline="") as file:
        file.write(text)


def heading() -> str:
    return ",".join([*FIELDS, "error_type", "error"]) + "\r\n"


def as_csv(jobs: Iterable[Job]) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    for job in jobs:
        known = plain(job)
        error = (job.error.error_type, job.error.message) if job.error is not None else ("", "")
        writer.writerow(
            [_harmless(value) for value in (*(known[field] for field in FIELDS), *error)]
        )
    return text.getvalue()


def as_jsonl(jobs: Iterable[Job]) -> str:
    return "".join(msgspec.json.encode(plain(job)).decode() + "\n" for job in jobs)


def _harmless(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if text.startswith(FORMULA) else text
