"""What follows goes on when the daemon is killed and another takes its place."""

from __future__ import annotations

import json
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.daemon import PATIENCE, eventually
from support.trial import Trial, trial

TASKS = """
[retry.soon]
max_attempts = 3
delays = ["10ms"]
[tasks.wait]
command = "echo begun; test -e go || sleep 600"
retry = "soon"
[tasks.say]
command = ["echo", "said"]
"""


class Following:
    """A command that goes on, with all it has said so far."""

    def __init__(self, daemon: Trial, *words: str) -> None:
        self.path = daemon.folder / f"{words[0]}.out"
        with self.path.open("wb") as out:
            self.process = subprocess.Popen(
                daemon.command(*words), stdin=subprocess.DEVNULL, stdout=out, stderr=out
            )

    @property
    def lines(self) -> list[str]:
        return self.path.read_text().splitlines()

    def until(self, look: Callable[[str], bool], what: str) -> None:
        eventually(lambda: any(look(line) for line in self.lines), what)

    def end(self) -> None:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        self.process.wait(PATIENCE)


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Trial]:
    with trial(tmp_path, TASKS) as made:
        made.start()
        yield made


def test_status_events_and_logs_wait_for_a_daemon_that_was_killed(daemon: Trial) -> None:
    job = daemon.enqueue("wait")
    daemon.until_told(job, "action_started")
    with ExitStack() as stack:

        def follow(*words: str) -> Following:
            following = Following(daemon, *words)
            stack.callback(following.end)
            return following

        logs = follow("logs", str(job), "--follow")
        events = follow("events", "--follow", "--json")
        status = follow("status", "--watch", "--json")
        logs.until(lambda line: line == "begun", "output")
        for each in (events, status):
            each.until(lambda line: line.startswith("{"), "the first words")

        (daemon.folder / "go").touch()
        daemon.pull_the_plug()
        for each in (logs, events, status):
            each.until(lambda line: "waiting for it" in line, "it is missed")
        daemon.start()

        assert logs.process.wait(PATIENCE) == 0
        assert [line for line in logs.lines if line == "begun"] == ["begun"] * 2
        done = daemon.until_ended(daemon.enqueue("say"))
        events.until(lambda line: _is_end_of(done.id, line), "the end of a new job")
        status.until(lambda line: _counts_done(line, 2), "both are counted")


def _is_end_of(job: int, line: str) -> bool:
    told = json.loads(line) if line.startswith("{") else {}
    return (told.get("job"), told.get("type")) == (job, "action_completed")


def _counts_done(line: str, n: int) -> bool:
    return line.startswith("{") and json.loads(line)["states"].get("done") == n
