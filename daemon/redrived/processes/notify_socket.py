"""What a running command says about itself, in the sd_notify protocol.

Each attempt has a datagram socket of its own, so who speaks is known without asking. A
datagram is lines of NAME=value: WATCHDOG=1, STATUS=..., X_REDRIVE_PROGRESS=done/total,
X_REDRIVE_METRIC_name=number. Everything else in it is ignored, as sd_notify has it.
"""

from __future__ import annotations

import asyncio
import math
import os
import socket
from collections.abc import Callable

from msgspec import Struct

from redrive.models import Progress

_LARGEST = 8192  # bytes of one datagram; what is longer is cut
_AT_ONCE = 64  # datagrams before others get their turn
_PROGRESS = "X_REDRIVE_PROGRESS"
_METRIC = "X_REDRIVE_METRIC_"


class Notice(Struct, frozen=True, kw_only=True):
    """A sign of life, and what came with it."""

    status: str | None = None
    progress: Progress | None = None
    metrics: dict[str, float] = {}


def parse(datagram: bytes) -> Notice | None:
    """None when it says nothing that we know."""
    is_alive = False
    status: str | None = None
    progress: Progress | None = None
    metrics: dict[str, float] = {}
    for line in datagram.decode(errors="replace").splitlines():
        name, _, value = line.partition("=")
        if name == "WATCHDOG":
            is_alive = is_alive or value == "1"
        elif name == "STATUS":
            status = value
        elif name == _PROGRESS:
            progress = _progress(value) or progress
        elif name.startswith(_METRIC) and (number := _number(value)) is not None:
            metrics[name.removeprefix(_METRIC)] = number
    if is_alive or status is not None or progress or metrics:
        return Notice(status=status, progress=progress, metrics=metrics)
    return None


class NotifySocket:
    """Listens until it is closed, and hands every notice on."""

    def __init__(self, path: str, on_notice: Callable[[Notice], None]) -> None:
        self.path = path
        self._on_notice = on_notice
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.bind(path)
        except OSError:
            self._socket.close()
            raise
        self._loop = asyncio.get_running_loop()
        self._loop.add_reader(self._socket, self._receive)

    def close(self) -> None:
        """Hears what was said before the end, then removes the socket."""
        self._receive()
        self._loop.remove_reader(self._socket)
        self._socket.close()
        try:
            os.unlink(self.path)
        except FileNotFoundError:
            pass

    def _receive(self) -> None:
        for _ in range(_AT_ONCE):
            try:
                datagram = self._socket.recv(_LARGEST)
            except BlockingIOError:
                return
            if (notice := parse(datagram)) is not None:
                self._on_notice(notice)


def _progress(text: str) -> Progress | None:
    """None where either is no amount of work: half of what it says would be another word."""
    said, _, of = text.partition("/")
    done, total = _number(said), _number(of)
    if done is None or done < 0 or (of and total is None) or (total is not None and total < 0):
        return None
    return Progress(done=done, total=total)


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if math.isfinite(number) else None
