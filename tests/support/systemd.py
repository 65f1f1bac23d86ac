"""A stand-in for systemd's end of `$NOTIFY_SOCKET`."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from support.daemon import PATIENCE


class NotifySocket:
    """Hears what a service tells; every message is a dict of its lines."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "notify"
        self.heard: list[dict[str, str]] = []
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.path))

    def close(self) -> None:
        self._socket.close()

    def env(self, watchdog: float = 0.0) -> dict[str, str]:
        variables = {"NOTIFY_SOCKET": str(self.path)}
        if watchdog:
            variables["WATCHDOG_USEC"] = str(round(watchdog * 1_000_000))
        return variables

    def wait_for(self, key: str, value: str = "") -> dict[str, str]:
        """The next message that has this line; an empty value fits any."""
        deadline = time.monotonic() + PATIENCE
        while (left := deadline - time.monotonic()) > 0:
            self._socket.settimeout(left)
            try:
                text = self._socket.recv(4096).decode()
            except TimeoutError:
                break
            message = dict(line.split("=", 1) for line in text.splitlines())
            self.heard.append(message)
            if key in message and value in message[key]:
                return message
        raise AssertionError(f"nobody said {key}={value}; heard: {self.heard}")

    def forget(self) -> None:
        """Read away what has been said so far."""
        self._socket.settimeout(0)
        try:
            while True:
                self._socket.recv(4096)
        except BlockingIOError:
            pass

    def says_nothing(self, seconds: float) -> bool:
        """Whether nobody says a word for so long."""
        self._socket.settimeout(seconds)
        try:
            self.heard.append({"": self._socket.recv(4096).decode()})
        except TimeoutError:
            return True
        return False
