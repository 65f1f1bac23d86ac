"""The console as an operator has it: in a terminal, on a real daemon that may go away."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest

from redrive.errors import Exit
from redrive.lifecycle import JobState
from support.console_terminal import DEADLINE, ConsoleTerminal
from support.trial import Trial, trial

HANDLERS = """
import os

def fetch(n):
    if not os.path.exists("up"):
        raise ConnectionError("the other side is down")
"""
TASKS = """
[pools.default]
path = ["."]
processes = 1
[tasks.fetch]
python = "handlers:fetch"
retry = false
"""


BROKEN = Path(__file__).parents[1] / "tui" / "crashing_console.py"


@contextmanager
def console(daemon: Trial, *command: str, **environ: str) -> Generator[ConsoleTerminal]:
    terminal = ConsoleTerminal(command or daemon.command(), columns=140, environ=environ)
    try:
        terminal.until_shown("live")
        yield terminal
    finally:
        terminal.close()


def some_dead(daemon: Trial, count: int) -> list[int]:
    ids = daemon.enqueue_many("fetch", count)
    assert {daemon.until_ended(id).state for id in ids} == {JobState.DEAD}
    return ids


def test_a_dead_job_is_requeued_from_the_keyboard_and_q_leaves_a_clean_terminal(
    tmp_path: Path,
) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        _, newest = some_dead(daemon, 2)
        (tmp_path / "up").touch()
        with console(daemon) as terminal:
            terminal.press("2")
            terminal.until_shown("as of")
            terminal.until_shown(f"> {newest} ")
            terminal.until_shown("connection_error")
            terminal.press("r")
            terminal.until_shown("✓ done")
            assert "job_requeued" in daemon.told(newest)
            terminal.press("q")
            terminal.read_to_the_end()
            assert terminal.process.returncode == 0
            assert terminal.is_clean


def test_after_a_suspension_the_whole_screen_is_there_again(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        with console(daemon) as terminal:
            terminal.process.send_signal(signal.SIGTSTP)
            terminal.read_until("\x1b[?1049l")
            _, status = os.waitpid(terminal.process.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            terminal.process.send_signal(signal.SIGCONT)
            terminal.read_until("Schedules")  # which nothing changes


def test_a_restart_is_survived_without_a_key(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        some_dead(daemon, 1)
        with console(daemon) as terminal:
            terminal.until_shown("1 dead in default")
            daemon.pull_the_plug()
            terminal.until_shown("lost")
            terminal.until_shown("cannot reach")
            terminal.until_shown("1 dead in default")
            terminal.until_shown("retry 2")
            daemon.start()
            terminal.until_shown("live")
            some_dead(daemon, 1)
            terminal.until_shown("2 dead in default")
            assert "cannot reach" not in terminal.screen.text


def test_a_command_typed_while_the_link_is_lost_is_never_executed_later(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        dead = some_dead(daemon, 1)[0]
        with console(daemon) as terminal:
            terminal.press("2")
            terminal.until_shown("as of")
            daemon.pull_the_plug()
            terminal.until_shown("lost")
            terminal.press("D")
            terminal.until_shown("nothing was sent")
            daemon.start()
            terminal.until_shown("live")
            later = some_dead(daemon, 1)[0]
            terminal.until_shown(f" {later} ")
        assert daemon.told(dead)[-1] == "step_retry_exhausted"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_a_clean_terminal(tmp_path: Path, number: signal.Signals) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        with console(daemon) as terminal:
            terminal.process.send_signal(number)
            terminal.read_to_the_end()
            assert terminal.process.returncode == 0
            assert terminal.is_clean


def test_the_console_goes_with_its_terminal(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        with console(daemon) as terminal:
            terminal.vanish()
            terminal.process.wait(DEADLINE)


def test_a_crash_leaves_a_clean_terminal_and_a_report(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        broken = [sys.executable, str(BROKEN), "--config", str(daemon.config)]
        with console(daemon, *broken, TMPDIR=str(tmp_path)) as terminal:
            terminal.press("o")
            told = terminal.read_to_the_end().decode()
            assert terminal.is_clean
            assert terminal.process.returncode == Exit.INTERNAL
        (report,) = tmp_path.glob("redrive-console-*.txt")
        assert str(report) in told
        assert "something nobody thought of" in report.read_text()
        assert report.stat().st_mode & 0o077 == 0
        assert "Traceback" not in told
