"""What a daemon that cannot start exits with, and what one that can does not write down."""

from __future__ import annotations

import socket
import sqlite3
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from redrive.errors import Exit
from support.daemon import PATIENCE, Daemon, eventually
from support.trial import trial

AWAY = '[store]\nurl = "postgresql+psycopg://nobody@127.0.0.1:1/nowhere"\n'
CALLS = """
[http]
listen = "127.0.0.1:0"
[tasks.call]
http = { url = "{{ args.url }}" }
"""
NOTES = """
[tasks.notes]
command = "echo attempt $REDRIVE_ATTEMPT_NUMBER >> began"
retry = true
"""
MISPLACED = """
[tasks.away]
command = ["true"]
cwd = "away"
[tasks.here]
command = ["true"]
"""


def failed_start(folder: Path, config: str = "") -> tuple[int, str]:
    daemon = Daemon(folder, config).start(ready=False)
    assert daemon.process is not None
    return daemon.process.wait(PATIENCE), daemon.log.read_text()


@pytest.mark.parametrize("folder", ["state", "run"])
def test_a_folder_that_cannot_be_one_is_named(tmp_path: Path, folder: str) -> None:
    (tmp_path / folder).write_text("in the way")
    code, said = failed_start(tmp_path)
    assert code == Exit.CONFIG
    assert f"/{folder} cannot be used as a folder" in said
    assert "Traceback" not in said


def test_what_its_config_names_and_is_not_there_is_told_and_keeps_nothing_else_from_running(
    tmp_path: Path,
) -> None:
    with trial(tmp_path, MISPLACED) as daemon:
        daemon.start()
        assert (
            f'{daemon.config}:11: tasks.away.cwd: got "{tmp_path}/away"' in daemon.log.read_text()
        )
        assert daemon.until_ended(daemon.enqueue("here")).state == "done"
        checked = daemon.run("config", "check")
        assert checked.returncode == Exit.CONFIG
        assert f"{daemon.config}:11: tasks.away.cwd" in checked.stderr
        assert daemon.run("reload").returncode == Exit.CONFIG


def test_a_database_that_is_away_is_tried_again_later(tmp_path: Path) -> None:
    code, said = failed_start(tmp_path, AWAY)
    assert code == Exit.TRY_LATER
    assert "the database does not answer" in said
    assert "[store] url" in said


def test_a_file_that_another_program_holds_is_tried_again_later(tmp_path: Path) -> None:
    store = tmp_path / "state" / "redrive.db"
    store.parent.mkdir(mode=0o700)
    with closing(sqlite3.connect(store, isolation_level=None)) as stranger:
        stranger.execute("BEGIN EXCLUSIVE")
        code, said = failed_start(tmp_path)
    assert code == Exit.TRY_LATER
    assert "another program holds the database" in said


def test_a_start_that_fails_begins_no_work(tmp_path: Path) -> None:
    with trial(tmp_path, NOTES) as daemon, socket.create_server(("127.0.0.1", 0)) as taken:
        daemon.start()
        at = datetime.now(UTC) + timedelta(seconds=1)
        job = daemon.ask.enqueue("notes", at=at).id
        daemon.stop()
        eventually(lambda: datetime.now(UTC) > at, "it is due")
        works = daemon.config.read_text()
        daemon.config.write_text(f'{works}[http]\nlisten = "127.0.0.1:{taken.getsockname()[1]}"\n')

        failing = daemon.start(ready=False).process
        assert failing is not None
        assert failing.wait(PATIENCE) == Exit.FAILED

        assert not (tmp_path / "began").exists()
        daemon.config.write_text(works)
        daemon.start()
        daemon.until_ended(job)
        assert (tmp_path / "began").read_text() == "attempt 1\n"


@pytest.mark.parametrize(
    ("content", "code", "words"),
    [
        (b"this is no database " * 500, Exit.FAILED, "redrive restore"),
        (None, Exit.CONFIG, "a database of another program"),
    ],
)
def test_a_file_that_is_no_store_of_ours_is_left_as_it_is(
    tmp_path: Path, content: bytes | None, code: Exit, words: str
) -> None:
    store = tmp_path / "state" / "redrive.db"
    store.parent.mkdir(mode=0o700)
    if content is None:
        with closing(sqlite3.connect(store)) as stranger:
            stranger.execute("CREATE TABLE theirs (a)")
            stranger.commit()
        content = store.read_bytes()
    else:
        store.write_bytes(content)

    exited, said = failed_start(tmp_path)

    assert exited == code
    assert words in said
    assert "Traceback" not in said
    assert store.read_bytes() == content


def test_the_log_holds_no_line_for_every_request(tmp_path: Path) -> None:
    with trial(tmp_path, CALLS) as daemon:
        daemon.start()
        said = daemon.log.read_text()
        (address,) = {word for word in said.split() if word.startswith("http://127.0.0.1:")}
        job = daemon.until_ended(daemon.enqueue("call", url=f"{address}/healthz"))
        assert job.state == "done"
        assert "healthz" not in daemon.log.read_text()
        assert "uvicorn" not in daemon.log.read_text()
        assert "Started server" not in daemon.log.read_text()
