from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from redrive_tui import export as exporting
from redrive_tui.export import as_csv, export, heading
from redrive_tui.job_list import JobList
from support import incident


def only_file(folder: Path) -> tuple[Path, str]:
    (file,) = folder.iterdir()
    return file, file.read_text()


async def test_everything_that_matches_is_written_page_by_page(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    source = incident.source()
    source.jobs = incident.jobs(700)

    told = await export(source, JobList(where="state:dead"), "jsonl", incident.NOW)

    file, text = only_file(tmp_path)
    jobs = [json.loads(line) for line in text.splitlines()]
    assert len(jobs) == 88
    assert {job["state"] for job in jobs} == {"dead"}
    assert told == f"88 jobs written to {file}"


async def test_what_is_too_much_for_a_file_is_said_to_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(exporting, "MOST", 400)
    source = incident.source()
    source.jobs = incident.jobs(700)

    told = await export(source, JobList(), "jsonl", incident.NOW)

    file, text = only_file(tmp_path)
    assert len(text.splitlines()) == 400
    assert told == f"the first 400 of 700 jobs written to {file}"


async def test_a_csv_has_its_heading_and_a_row_per_job(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    await export(incident.source(), JobList(), "csv", incident.NOW)

    rows = list(csv.DictReader(only_file(tmp_path)[1].splitlines()))
    assert len(rows) == 240
    assert rows[0]["id"] == "240"
    assert rows[0]["available_at"] == "2026-09-21T14:14:01.000000Z"


async def test_no_file_is_written_over(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    await export(incident.source(), JobList(), "csv", incident.NOW)

    with pytest.raises(FileExistsError):
        await export(incident.source(), JobList(), "csv", incident.NOW)


def test_a_spreadsheet_is_not_made_to_run_what_a_task_wrote() -> None:
    job = replace(incident.jobs()[0], task="=HYPERLINK(1)")

    (row,) = csv.DictReader([heading(), as_csv([job])])
    assert row["task"] == "'=HYPERLINK(1)"
