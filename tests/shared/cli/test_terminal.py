"""What is only so on a terminal: width, colour, questions, cleaned output."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Job
from redrive.protocol.commands import Acted, Outcome
from redrive.protocol.queries import JobPage, LogReply, QueuePage
from redrive.protocol.rehearsals import PreviewReply
from redrive.protocol.rows import QueueRow, RunPlan
from support import incident
from support.peer import Peer
from support.terminal import in_terminal

SCRIPT = "from redrive.cli.main import main; main()"


def redrive(
    folder: Path, *arguments: str, columns: int = 80, typed: bytes = b"", no_color: str = ""
) -> tuple[int, str]:
    environ = {"REDRIVE_CONFIG": str(folder / "config.toml"), "NO_COLOR": no_color}
    return in_terminal(SCRIPT, arguments, environ=environ, columns=columns, typed=typed)


@pytest.fixture
def jobs(peer: Peer) -> Peer:
    error = ErrorRecord(error_type="timeout", category="transient", message="too slow " * 20)
    dead = Job(id=12, task="parse", queue="bulk", state=JobState.DEAD, error=error)
    peer.replies["ListJobs"] = JobPage(jobs=[dead], after=None, as_of=1)
    return peer


@pytest.mark.parametrize("columns", [70, 80, 120])
def test_a_table_fits_the_terminal_and_only_the_error_is_cut(
    jobs: Peer, folder: Path, columns: int
) -> None:
    _, out = redrive(folder, "jobs", columns=columns, no_color="1")
    _, row = out.splitlines()
    assert len(row) == columns
    assert row.startswith("12  parse  dead ")
    assert row.endswith("…")


@pytest.mark.parametrize("columns", [12, 24, 40, 60, 80, 200])
def test_where_a_table_cannot_fit_its_last_columns_are_left_out_with_a_mark(
    peer: Peer, folder: Path, columns: int
) -> None:
    row = QueueRow(name="documents", states={"queued": 1_000_000, "done": 12_345_678})
    peer.replies["ListQueues"] = QueuePage(queues=[row], as_of=1)
    _, out = redrive(folder, "queues", columns=columns, no_color="1")
    titles, cells = out.splitlines()
    assert max(len(titles), len(cells)) <= columns
    assert cells.startswith("documen")
    assert titles.endswith("…") == (columns < 100)


def test_where_the_console_could_not_paint_the_status_is_printed(peer: Peer, folder: Path) -> None:
    peer.replies["Status"] = incident.status()
    elsewhere = f"import os; os.dup2(os.open({str(folder / 'log')!r}, os.O_WRONLY | os.O_CREAT), 2)"
    environ = {"REDRIVE_CONFIG": str(folder / "config.toml")}
    code, out = in_terminal(f"{elsewhere}\n{SCRIPT}", [], environ=environ)
    assert code == 0
    assert "reports" in out
    assert "\x1b[?1049h" not in out  # the screen of its own that a console takes


def test_a_state_has_its_colour(jobs: Peer, folder: Path) -> None:
    assert "\x1b[31mdead" in redrive(folder, "jobs")[1]


def test_no_color_means_no_escape_at_all(jobs: Peer, folder: Path) -> None:
    assert "\x1b" not in redrive(folder, "jobs", no_color="1")[1]


def test_output_is_cleaned_on_a_terminal(peer: Peer, folder: Path) -> None:
    data = b"a\x1b]0;title\x07b\x1b[31mred\xe2\x80\xae\r\nnext\n"
    peer.replies["ReadLog"] = LogReply(
        data=data, offset=len(data), size=len(data), finished=True, attempt=1, execution=1
    )
    assert redrive(folder, "logs", "12") == (0, "abred<U+202E>\r\nnext\r\n")


def test_json_on_a_terminal_is_escaped(jobs: Peer, folder: Path) -> None:
    bad = Job(id=12, task="parse", queue="bulk", args={"text": "\x9b2J\u202e"})
    jobs.replies["ListJobs"] = JobPage(jobs=[bad], after=None, as_of=1)
    assert r"\u009b2J\u202e" in redrive(folder, "jobs", "--json")[1]


@pytest.mark.parametrize(("typed", "code", "acts"), [(b"y\n", 0, 1), (b"n\n", 1, 0)])
def test_a_set_is_shown_and_asked_about(
    jobs: Peer, folder: Path, typed: bytes, code: int, acts: int
) -> None:
    jobs.replies["Preview"] = PreviewReply(
        total=1, by_state={"dead": 1}, fits=1, excluded={}, sample=[], as_of=9, newest=90
    )
    jobs.replies["Act"] = Acted(outcomes=[Outcome(id="12", done=True)])
    exit_code, out = redrive(folder, "discard", "--where", "state:dead", typed=typed)
    assert exit_code == code
    assert "discard would change 1 of 1 job (1 dead)" in out
    assert re.search(r"discard 1 job\? \[y/N\]", out)
    assert len(jobs.asked_for("Act")) == acts
    if acts:
        assert jobs.asked_for("Act")[0].newest == 90


def test_runs_that_wait_without_a_job_are_asked_about_as_runs(jobs: Peer, folder: Path) -> None:
    plans = [RunPlan(id=id, steps=["store"]) for id in ("r7", "r8")]
    plans.append(RunPlan(id="r9", refused="it is done; cancel is for runs that are running"))
    jobs.replies["Preview"] = PreviewReply(
        total=3, by_state={"done": 3}, fits=0, excluded={}, sample=[], as_of=9, newest=0, runs=plans
    )
    _, out = redrive(folder, "cancel", "r7", "r8", "r9", typed=b"n\n")
    assert re.search(r"cancel 2 runs, 0 jobs\? \[y/N\]", out)


@pytest.mark.parametrize(("total", "code"), [(0, 0), (3, 1)])
def test_where_nothing_would_be_done_nothing_is_asked(
    jobs: Peer, folder: Path, total: int, code: int
) -> None:
    jobs.replies["Preview"] = PreviewReply(
        total=total,
        by_state={},
        fits=0,
        excluded={"it is done": total},
        sample=[],
        as_of=9,
        newest=90,
    )
    exit_code, out = redrive(folder, "discard", "--where", "queue:bulk")
    assert (exit_code, jobs.asked_for("Act")) == (code, [])
    assert "[y/N]" not in out
    assert "nothing was done" in out
