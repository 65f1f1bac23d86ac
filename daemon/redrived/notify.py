"""What systemd is told (sd_notify(3)): thirty lines, no dependency, nothing without a socket."""

from __future__ import annotations

import os
import socket
import time


class Notifier:
    """Takes the variables out of the environment, so that no job inherits them."""

    def __init__(self) -> None:
        address = os.environ.pop("NOTIFY_SOCKET", "")
        usec = os.environ.pop("WATCHDOG_USEC", "0")
        pid = os.environ.pop("WATCHDOG_PID", "")
        is_ours = not pid or pid == str(os.getpid())
        self.watchdog_every = int(usec) / 3_000_000 if usec.isdigit() and is_ours else 0.0
        self._status = ""
        self._socket: socket.socket | None = None
        if address:
            self._address = "\0" + address[1:] if address.startswith("@") else address
            self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC)

    def ready(self) -> None:
        self._send("READY=1")

    def status(self, text: str) -> None:
        if text != self._status:
            self._status = text
            self._send(f"STATUS={text}")

    def reloading(self) -> None:
        self._send(f"RELOADING=1\nMONOTONIC_USEC={time.monotonic_ns() // 1000}")

    def stopping(self) -> None:
        self._send("STOPPING=1")

    def alive(self) -> None:
        self._send("WATCHDOG=1")

    def extend(self, seconds: float) -> None:
        self._send(f"EXTEND_TIMEOUT_USEC={round(seconds * 1_000_000)}")

    def _send(self, text: str) -> None:
        if self._socket is not None:
            try:
                self._socket.sendto(text.encode(), self._address)
            except OSError:
                pass  # whoever listened is gone; nothing of ours depends on it
