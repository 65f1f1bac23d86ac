"""Who gets in over tcp: libzmq asks here (ZAP) about every key, before anything is read.

The sockets are told to refuse everybody when nobody answers, and a key that cannot be read
lets nobody in.
"""

from __future__ import annotations

import logging
from collections import Counter
from pathlib import Path

import zmq
from zmq.utils import z85

from redrive import keys
from redrive.errors import ConfigProblem
from redrive.keys import Role
from redrive.pump import Pump
from redrived.seldom import Seldom

log = logging.getLogger(__name__)

TURN = 16
_VERSION = b"1.0"


class Gate:
    """Answers for the keys in a folder, as they are at that moment."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], folder: Path, dropped: Counter[str]
    ) -> None:
        self._folder = folder
        self._dropped = dropped
        self._seldom = Seldom(log)
        self._socket = context.socket(zmq.REP)
        self._pump = Pump(self._socket, self._read_some)

    def start(self) -> None:
        self._socket.bind("inproc://zeromq.zap.01")
        self._pump.start()

    def stop(self) -> None:
        self._pump.stop()
        self._socket.close(0)

    def guard(self, socket: zmq.Socket[bytes], role: Role) -> None:
        """Let only those in who hold a key of this role."""
        pair = keys.server_pair(self._folder)
        keys.known(self._folder)  # a file that others can write is refused now, not at night
        socket.setsockopt(zmq.CURVE_SERVER, 1)
        socket.setsockopt(zmq.CURVE_PUBLICKEY, pair.public)
        socket.setsockopt(zmq.CURVE_SECRETKEY, pair.secret)
        socket.setsockopt(zmq.ZAP_DOMAIN, role.encode())
        socket.setsockopt(zmq.ZAP_ENFORCE_DOMAIN, 1)

    def _read_some(self) -> None:
        for _ in range(TURN):
            try:
                asked = self._socket.recv_multipart(zmq.NOBLOCK)
            except zmq.Again:
                return
            self._socket.send_multipart(self._answer(asked), zmq.NOBLOCK)

    def _answer(self, asked: list[bytes]) -> list[bytes]:
        _, request, domain, address, _, mechanism, *credentials = asked
        name = None
        if mechanism == b"CURVE" and len(credentials) == 1:
            name = self._name_of(credentials[0], domain.decode())
        if name is None:
            self._dropped["stranger"] += 1
            self._seldom.warn("a connection from %s has no key that is let in", address.decode())
            return [_VERSION, request, b"400", b"this key is not let in", b"", b""]
        return [_VERSION, request, b"200", b"OK", name.encode(), b""]

    def _name_of(self, public: bytes, domain: str) -> str | None:
        try:
            known = keys.known(self._folder)
        except ConfigProblem as problem:
            log.error("nobody new is let in over tcp: %s", problem)
            return None
        written = z85.encode(public).decode()
        for key in known:
            if key.public == written and domain in ("viewer", key.role):
                return key.name
        return None
