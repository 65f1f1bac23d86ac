"""The inherited socket: frames of four bytes of length and that much JSON."""

from __future__ import annotations

import json
import os
import select
import socket
import threading
from typing import Any

from .descriptors import out_of_the_way

CHUNK = 1 << 18


class Channel:
    """Read by one thread, written by any; `wake` ends the reader's wait from another thread."""

    def __init__(self, fd: int) -> None:
        self._socket = socket.socket(fileno=out_of_the_way(fd))
        self._socket.set_inheritable(False)
        self._received = bytearray()
        self._sending = threading.Lock()
        self._woken, self._waker = map(out_of_the_way, os.pipe())
        os.set_blocking(self._woken, False)
        os.set_blocking(self._waker, False)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._poll.register(self._woken, select.POLLIN)

    def first(self) -> dict[str, Any] | None:
        """The setup message; None when the daemon went away before it."""
        while True:
            message = self.message()
            if message is not None:
                setup: dict[str, Any] = message[1]
                return setup
            if not self.fill():
                return None

    def message(self) -> list[Any] | None:
        """The next message that is here whole."""
        received = self._received
        if len(received) < 4:
            return None
        end = 4 + int.from_bytes(received[:4], "big")
        if len(received) < end:
            return None
        message: list[Any] = json.loads(received[4:end])
        del received[:end]
        return message

    def wait(self, seconds: float | None) -> bool:
        """Until something can be read, `wake` is called or the time is up; whether to `fill`."""
        ready = self._poll.poll(None if seconds is None else seconds * 1000)
        fds = [fd for fd, _ in ready]
        if self._woken in fds:
            os.read(self._woken, 4096)
        return self._socket.fileno() in fds

    def fill(self) -> bool:
        """Read what is there; False when the daemon is gone."""
        try:
            chunk = self._socket.recv(CHUNK)
        except OSError:
            return False
        self._received += chunk
        return bool(chunk)

    def wake(self) -> None:
        try:
            os.write(self._waker, b"!")
        except BlockingIOError:
            pass  # enough wake-ups are waiting already

    def send(self, messages: list[str]) -> None:
        # Text that is no valid UTF-8 (a file name, say) loses a character, not the frame.
        frames = [message.encode("utf-8", "replace") for message in messages]
        data = b"".join(len(frame).to_bytes(4, "big") + frame for frame in frames)
        with self._sending:
            try:
                self._socket.sendall(data)
            except OSError:
                pass  # the daemon is gone: the reader sees it too, and ends this process
