"""What systemd is told (sd_notify(3)): no dependency, and nothing without a socket."""

from __future__ import annotations

import asyncio
import os
import socket
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

EXTENSION = 30.0  # seconds asked for at once while something takes long


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

    @property
    def is_heard(self) -> bool:
        return self._socket is not None

    def ready(self, text: str = "running") -> None:
        """At the end of the start, and of a reload whether it went well or not."""
        self._status = text
        self._send(f"READY=1\nSTATUS={text}")

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

    def close(self) -> None:
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    @asynccontextmanager
    async def patience(self, text: str) -> AsyncGenerator[None]:
        """For what may take long: says what it is, and asks for more time until it is done."""
        self.status(text)
        asking = asyncio.create_task(self._ask_for_time(), name="patience")
        try:
            yield
        finally:
            asking.cancel()
            await asyncio.gather(asking, return_exceptions=True)

    async def _ask_for_time(self) -> None:
        while True:
            self.extend(EXTENSION)
            await asyncio.sleep(EXTENSION / 3)

    def _send(self, text: str) -> None:
        if self._socket is not None:
            try:
                self._socket.sendto(text.encode(), self._address)
            except OSError:
                pass  # whoever listened is gone; nothing of ours depends on it
