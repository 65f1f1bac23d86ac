"""The other end of a console that runs: what it wrote, what stands on its screen, keys for it."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import termios
import time
from collections.abc import Mapping, Sequence

from rich.cells import get_character_cell_size

DEADLINE = 20.0  # seconds that a loaded machine may need for a screen

_OF_ANOTHER = {"NO_COLOR", "COLUMNS", "LINES"}  # what the terminal of the tests wants and is
_PIECE = re.compile(
    r"\x1b\[(?P<numbers>[0-9;:?<>=]*)[ !$]*(?P<final>[@-~])|\x1b\][^\x07]*\x07|\x1b."
    r"|(?P<control>[\x00-\x1f])|(?P<text>[^\x00-\x1f\x7f]+)"
)
_BEGUN = re.compile(r"\x1b(\[[0-9;:?<>=]*[ !$]*|\][^\x07]*)?$")


class Screen:
    """As much of a terminal as Textual asks for: places, text, and the end of a line."""

    def __init__(self, columns: int, lines: int) -> None:
        self._cells = [[" "] * columns for _ in range(lines)]
        self._column = self._line = 0
        self._rest = ""  # a sequence of which only the beginning has come

    @property
    def lines(self) -> list[str]:
        return ["".join(line).rstrip() for line in self._cells]

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def feed(self, text: str) -> None:
        text = self._rest + text
        begun = _BEGUN.search(text)
        self._rest = begun[0] if begun else ""
        for piece in _PIECE.finditer(text, 0, len(text) - len(self._rest)):
            if piece["text"]:
                self._write(piece["text"])
            elif piece["control"] == "\r":
                self._column = 0
            elif piece["control"] == "\n":
                self._line += 1
            elif piece["final"] == "H":
                line, _, column = piece["numbers"].partition(";")
                self._line, self._column = int(line or 1) - 1, int(column or 1) - 1

    def _write(self, text: str) -> None:
        for character in text:
            width = get_character_cell_size(character)
            if width and self._line < len(self._cells) and self._column < len(self._cells[0]):
                row = self._cells[self._line]
                row[self._column : self._column + width] = [character] + [""] * (width - 1)
            self._column += width


class ConsoleTerminal:
    """A console in a pseudo-terminal."""

    def __init__(
        self,
        command: Sequence[str],
        *,
        columns: int = 100,
        lines: int = 30,
        environ: Mapping[str, str] | None = None,
    ) -> None:
        self.screen = Screen(columns, lines)
        self.received = b""
        self.primary, replica = pty.openpty()
        self.modes = termios.tcgetattr(replica)
        fcntl.ioctl(replica, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
        known = {name: os.environ[name] for name in os.environ if name not in _OF_ANOTHER}
        self.process = subprocess.Popen(
            command,
            stdin=replica,
            stdout=replica,
            stderr=replica,
            env={**known, "TERM": "xterm-256color", **(environ or {})},
            start_new_session=True,
            preexec_fn=_control,  # noqa: PLW1509 - of one system call
        )
        self._decode = codecs.getincrementaldecoder("utf-8")("replace").decode
        self._is_there = True
        self._replica = replica  # kept open: its modes are looked at when the console has gone

    def press(self, keys: str) -> None:
        os.write(self.primary, keys.encode())

    def read_until(self, words: str) -> None:
        """Until these words have come since the last call."""
        before, wanted = len(self.received), words.encode()
        until = time.monotonic() + DEADLINE
        while wanted not in self.received[before:]:
            assert time.monotonic() < until, f"{words!r} did not come:\n{self.screen.text}"
            self.read(0.1)

    def until_shown(self, words: str, within: float = DEADLINE) -> float:
        """Until these words stand on the screen; the seconds that took."""
        begun = time.monotonic()
        while words not in self.screen.text:
            waited = time.monotonic() - begun
            assert waited < within, f"{words!r} did not appear:\n{self.screen.text}"
            self.read(0.05)
        return time.monotonic() - begun

    def read_to_the_end(self) -> bytes:
        until = time.monotonic() + DEADLINE
        while self.process.poll() is None or self.read(0):
            assert time.monotonic() < until, "the console did not end"
            self.read(0.1)
        return self.received

    def read_for(self, seconds: float) -> int:
        """Whatever comes for so long; how many bytes it was."""
        before, until = len(self.received), time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self.read(left)
        return len(self.received) - before

    def read(self, timeout: float) -> bool:
        if not select.select([self.primary], [], [], timeout)[0]:
            return False
        try:
            piece = os.read(self.primary, 65536)
        except OSError:  # the other end is closed
            return False
        self.received += piece
        self.screen.feed(self._decode(piece))
        return bool(piece)

    def vanish(self) -> None:
        """The window is closed, the connection cut."""
        os.close(self._replica)
        os.close(self.primary)
        self._is_there = False

    @property
    def is_clean(self) -> bool:
        """Left as it was found: the usual screen, the cursor, the modes of the line."""
        sent = self.received
        return (
            sent.rfind(b"\x1b[?1049l") > sent.rfind(b"\x1b[?1049h")
            and sent.rfind(b"\x1b[?25h") > sent.rfind(b"\x1b[?25l")
            and termios.tcgetattr(self._replica) == self.modes
        )

    def close(self) -> None:
        self.process.kill()
        self.process.wait()
        if self._is_there:
            self.vanish()


def _control() -> None:
    """This terminal is the one that the session hangs on: when it goes, the session is told."""
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
