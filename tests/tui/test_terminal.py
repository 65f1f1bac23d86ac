"""Where there is no terminal, the console says what to use instead."""

from __future__ import annotations

import subprocess
import sys


def test_without_a_terminal_nothing_but_a_sentence_is_written() -> None:
    ended = subprocess.run(
        [sys.executable, "-m", "redrive_tui"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )

    assert ended.returncode != 0
    assert ended.stdout == ""
    assert "the console needs a terminal\n  `redrive status` prints the same" in ended.stderr
    assert "\x1b[" not in ended.stderr
