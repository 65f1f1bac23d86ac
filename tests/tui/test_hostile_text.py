"""Through a real terminal: whatever jobs and daemons write, only our own sequences go out."""

from __future__ import annotations

import re
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive_tui.sanitize import clean
from support import hostile
from support.console_terminal import ConsoleTerminal
from support.stage import on_stage

PROGRAM = Path(__file__).with_name("hostile_console.py")
# What Textual itself sends: colours, cursor, modes, the pointer's shape, questions.
OURS = re.compile(
    rb"\x1b\[[0-9;:?<>=]*[mHhlfnqtu]|\x1b\[\?[0-9;]*\$p|\x1b\[>?[0-9;]*c|\x1b\]22;[a-z]*\x07"
)


@pytest.fixture
def terminal() -> Iterator[ConsoleTerminal]:
    opened = ConsoleTerminal(
        [sys.executable, str(PROGRAM)], environ={"PYTHONPATH": str(PROGRAM.parents[1])}
    )
    yield opened
    opened.close()


def foreign(received: bytes) -> list[bytes]:
    """What went out beside printable text and sequences of our own."""
    rest = OURS.sub(b"", received).decode()
    return [each.encode() for each in re.findall(r"[\x00-\x09\x0b\x0c\x0e-\x1f\x7f-\x9f]", rest)]


def test_no_screen_sends_a_sequence_that_came_from_outside(terminal: ConsoleTerminal) -> None:
    terminal.read_until("HOSTILE")
    for key, words in (
        ("2", "LAST ERROR"),
        ("3", "CAUSE"),
        ("4", "STEPS"),
        ("5", "LIMITS"),
        ("6", "NEXT FIRES"),
        ("7", "RUNNING ON"),
        ("8", "follow"),
        ("2", "LAST ERROR"),
        ("\r", "WAIT AFTER"),
        ("]", "attempt"),
        ("]", "arguments"),
        ("]", "traceback"),
        ("]", "action"),
        ("x", "Why is job"),
    ):
        terminal.press(key)
        terminal.read_until(words)
    terminal.press("\x11")  # ctrl+q
    received = terminal.read_to_the_end()

    assert foreign(received) == []
    assert b"owned" not in received.replace(clean(hostile.TEXT).encode(), b"")
    assert terminal.process.returncode == 0


@pytest.mark.parametrize("signal_", [signal.SIGTERM, signal.SIGHUP])
def test_a_signal_leaves_the_terminal_as_it_was(
    terminal: ConsoleTerminal, signal_: signal.Signals
) -> None:
    terminal.read_until("HOSTILE")
    terminal.process.send_signal(signal_)
    terminal.read_to_the_end()

    assert terminal.process.returncode == 0
    assert terminal.is_clean


async def test_markup_in_a_text_is_shown_and_not_obeyed() -> None:
    async with on_stage(hostile.source()) as stage:
        for key in ("1", "2", "3", "4", "right_square_bracket", "5", "6", "7", "8"):
            await stage.press(key)
            assert "[/red][bold" in stage.text


async def test_dialogs_are_no_way_in_either() -> None:
    async with on_stage(hostile.source()) as stage:
        for keys in (["7", "X"], ["3", "r"], ["2", "K"], ["2", "Y"], ["2", "x"], ["5", "p", "o"]):
            await stage.press(*keys)
            assert "HOSTILE" in stage.text or "[/red]" in stage.text
            await stage.press("escape")


async def test_a_hostile_name_is_a_filter_that_can_be_read_and_edited() -> None:
    async with on_stage(hostile.source()) as stage:
        await stage.press("5", "enter", "slash")
        assert stage.console.pane.context == "jobs"
        assert "queue:" in stage.text


async def test_a_hostile_error_of_the_daemon_is_a_toast_like_any_other() -> None:
    async with on_stage(hostile.source()) as stage:
        stage.source.jobs, stage.source.details = [], {}
        stage.console.say(hostile.TEXT, "error")
        await stage.settle()
        assert "HOSTILE" in stage.text
