"""How many connections a socket has, and from whom.

libzmq accepts whoever comes and has no way to send anybody away. Its monitor tells the
descriptor of each connection, though, and the kernel can shut down a connection that we can
name. So one peer can neither use up the daemon's descriptors nor stay after misbehaving.
"""

from __future__ import annotations

import logging
import os
import socket as sockets
import struct

import zmq
from msgspec import Struct
from zmq.utils.monitor import parse_monitor_message

from redrive.pump import Pump
from redrived import descriptors
from redrived.bus.peers import Credentials, user_name
from redrived.seldom import Seldom

log = logging.getLogger(__name__)

MOST = 128  # connections of one user, or from one address, to one socket
TURN = 64

_UCRED = struct.Struct("iII")  # pid, uid, gid


class _Connection(Struct, frozen=True):
    whose: Credentials | str
    inode: int


class Connections:
    """The open connections of one socket, by descriptor."""

    def __init__(
        self, context: zmq.Context[zmq.Socket[bytes]], socket: zmq.Socket[bytes], name: str
    ) -> None:
        self._socket = socket
        self._name = name
        # By descriptor; changed by what the monitor tells, which is in order.
        self._open: dict[int, _Connection] = {}
        self._seldom = Seldom(log)
        self._monitor = context.socket(zmq.PAIR)
        self._monitor.setsockopt(zmq.RCVHWM, 0)  # a full monitor would hold up libzmq's own thread
        self._pump = Pump(self._monitor, self._read_some)

    def __len__(self) -> int:
        return len(self._open)

    def start(self) -> None:
        address = f"inproc://connections-{self._name}"
        self._socket.monitor(address, zmq.EVENT_ACCEPTED | zmq.EVENT_DISCONNECTED)
        self._monitor.connect(address)
        self._pump.start()

    def stop(self) -> None:
        self._pump.stop()
        self._socket.disable_monitor()
        self._monitor.close(0)

    def cut_off(self, whose: Credentials | str) -> None:
        """End every connection of one process, or from one address."""
        self._read_some()  # those that have gone since; their descriptors may be others' by now
        for descriptor, known in self._open.items():
            if known.whose == whose:
                _end_if_still(descriptor, known.inode)

    def _read_some(self) -> None:
        for _ in range(TURN):
            try:
                told = parse_monitor_message(self._monitor.recv_multipart(zmq.NOBLOCK))
            except zmq.Again:
                return
            if told["event"] == zmq.EVENT_ACCEPTED:
                self._accepted(told["value"])
            else:
                self._open.pop(told["value"], None)

    def _accepted(self, descriptor: int) -> None:
        connection = hold(descriptor)
        if connection is None:
            return
        with connection:
            whose = _whose(connection)
            if whose is None:
                return
            self._open[descriptor] = _Connection(whose, _inode(connection))
            if descriptors.are_nearly_gone():
                self._seldom.warn(
                    "the daemon has next to no descriptors left; a connection to the %s socket is"
                    " ended: raise LimitNOFILE of the service",
                    self._name,
                )
                _end(connection)
                return
            account = _account(whose)
            if sum(_account(known.whose) == account for known in self._open.values()) > MOST:
                self._seldom.warn(
                    "%s has %d connections to the %s socket; one more is ended",
                    user_name(whose.uid) if isinstance(whose, Credentials) else whose,
                    MOST,
                    self._name,
                )
                _end(connection)


def _end_if_still(descriptor: int, inode: int) -> None:
    """End a connection, unless its descriptor has become that of something else."""
    connection = hold(descriptor)
    if connection is None:
        return
    with connection:
        if _inode(connection) == inode:
            _end(connection)


def _end(connection: sockets.socket) -> None:
    """Shut down for both ends; closing it is libzmq's business."""
    try:
        connection.shutdown(sockets.SHUT_RDWR)
    except OSError:
        pass  # the peer was faster


def _account(whose: Credentials | str) -> int | str:
    return whose.uid if isinstance(whose, Credentials) else whose


def hold(descriptor: int) -> sockets.socket | None:
    """A connection of libzmq's, held so that its descriptor cannot become another's meanwhile.

    None when it is closed already; what took its number may be a file, or somebody else's.
    """
    try:
        ours = os.dup(descriptor)
    except OSError:
        return None
    try:
        return sockets.socket(fileno=ours)
    except OSError:
        os.close(ours)
        return None


def _inode(connection: sockets.socket) -> int:
    """Which connection it is; no other has the same."""
    return os.fstat(connection.fileno()).st_ino


def _whose(connection: sockets.socket) -> Credentials | str | None:
    try:
        if connection.family != sockets.AF_UNIX:
            return str(connection.getpeername()[0])
        raw = connection.getsockopt(sockets.SOL_SOCKET, sockets.SO_PEERCRED, _UCRED.size)
    except OSError:
        return None
    pid, uid, _ = _UCRED.unpack(raw)
    return Credentials(uid, pid)
