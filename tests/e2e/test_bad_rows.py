"""Rows that make no sense: each costs its own job, and nobody waits behind it."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from support.daemon import eventually
from support.faults import HANDLERS, TASKS
from support.trial import Trial, trial

CALL = """
[tasks.call]
http.url = "http://127.0.0.1:9/{{ args.n }}"
retry = 1
"""


# A text that is no JSON, one that is no UTF-8, and what is no text.
SPOILT = {"'not json'": "not json", "CAST(x'ff' AS TEXT)": "\ufffd", "x'ff'": "\ufffd"}


@pytest.fixture(params=SPOILT)
def spoilt(request: pytest.FixtureRequest) -> str:
    value: str = request.param
    return value


def spoil(daemon: Trial, ids: Sequence[int], column: str, value: str) -> None:
    """While the daemon is down."""
    store = daemon.folder / "state" / "redrive.db"
    with closing(sqlite3.connect(store, isolation_level=None)) as connection:
        for id in ids:
            connection.execute(f"UPDATE jobs SET {column} = {value} WHERE id = ?", (id,))


def check_it_was_put_aside(daemon: Trial, id: int) -> None:
    job = daemon.until_ended(id)
    assert (job.state, job.reason) == (JobState.DEAD, "permanent")
    assert job.error is not None
    assert (job.error.error_type, job.error.category) == ("unreadable_row", "permanent")
    assert "the arguments in its row are no JSON object" in job.error.message
    assert daemon.told(id)[-2:] == ["action_error", "step_retry_exhausted"]
    assert f"job {id} is put aside: the arguments in its row" in daemon.log.read_text()


def test_a_row_left_leased_that_cannot_be_read_keeps_the_daemon_from_nothing(
    tmp_path: Path, spoilt: str
) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        ids = [daemon.enqueue("hang", path="hanging") for _ in range(3)]
        for id in ids:
            daemon.until_told(id, "action_started")
        daemon.pull_the_plug()
        spoil(daemon, ids[:1], "args", spoilt)

        daemon.start()

        check_it_was_put_aside(daemon, ids[0])
        for id in ids[1:]:
            daemon.until_told(id, "action_lost")
            daemon.until_told(id, "action_started", n=2)
        daemon.hang_up()
        daemon.stop()
        daemon.check_store()


def test_a_waiting_row_that_cannot_be_read_costs_its_own_job_alone(
    tmp_path: Path, spoilt: str
) -> None:
    with trial(tmp_path, TASKS + CALL, HANDLERS) as daemon:
        daemon.start()
        daemon.run("pause", "default", check=True)
        written = [daemon.enqueue("write", path="written", n=n) for n in range(6)]
        said = [daemon.enqueue("say", n=n) for n in range(6)]
        called = [daemon.enqueue("call", n=n) for n in range(2)]
        bad = [written[0], written[3], said[0], said[3], called[0]]
        daemon.pull_the_plug()
        spoil(daemon, bad, "args", spoilt)
        daemon.start()

        daemon.run("resume", "default", check=True)

        for id in bad:
            check_it_was_put_aside(daemon, id)
        good = set(written + said) - set(bad)
        assert {daemon.until_ended(id).state for id in good} == {JobState.DONE}
        assert sorted(daemon.wrote("written")) == ["1", "2", "4", "5"]
        eventually(lambda: daemon.until_ended(called[1]), "the call behind it")


def test_a_row_that_cannot_be_read_is_shown_and_hides_no_other(tmp_path: Path, spoilt: str) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        bad, good = (daemon.enqueue("say", n=n) for n in range(2))
        daemon.until_all_ended()
        daemon.pull_the_plug()
        spoil(daemon, [bad], "args", spoilt)
        daemon.start()

        listed = daemon.run("jobs", "--json", check=True).stdout.splitlines()
        matching = daemon.run("jobs", "--where", "arg.n:1", "--json", check=True).stdout
        shown = json.loads(daemon.run("show", str(bad), "--json", check=True).stdout)

        assert [json.loads(line)["id"] for line in listed] == [good, bad]
        assert json.loads(matching)["id"] == good
        assert shown["args"] == {"unreadable": SPOILT[spoilt]}


@pytest.mark.parametrize("column", ["priority", "max_attempts", "life"])
@pytest.mark.parametrize("value", ["'high'", "1.5"], ids=["a word", "a fraction"])
def test_what_is_no_whole_number_in_a_row_holds_up_and_hides_no_other(
    tmp_path: Path, column: str, value: str
) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        daemon.run("pause", "default", check=True)
        ids = [daemon.enqueue("say", n=n) for n in range(3)]
        daemon.pull_the_plug()
        spoil(daemon, ids[:1], column, value)
        daemon.start()

        listed = daemon.run("jobs", "--json", check=True).stdout.splitlines()
        daemon.run("resume", "default", check=True)

        assert [json.loads(line)["id"] for line in listed] == ids[::-1]
        assert [daemon.until_ended(id).state for id in ids] == [JobState.DONE] * 3
