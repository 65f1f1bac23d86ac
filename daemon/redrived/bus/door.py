"""One of the bus's sockets: its options, where it is bound, and who is connected."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from pathlib import Path

import zmq

from redrive.errors import ConfigProblem
from redrive.keys import Role
from redrived.bus.connections import Connections
from redrived.bus.gate import Gate
from redrived.bus.places import Place

log = logging.getLogger(__name__)

MARGIN = 512  # bytes that handshakes and encryption need in a frame

_IPC = "ipc://"
_OPTIONS: Mapping[zmq.SocketOption, int] = {
    # libzmq stops reading a connection that has filled its queue. When such a peer leaves, the
    # next heartbeat, ours or one that it still sent, fails an assertion (libzmq#4841) and ends
    # the daemon. So a queue is never full; `Floods` finds who fills it with what is of no use.
    zmq.RCVHWM: 0,
    zmq.HANDSHAKE_IVL: 5_000,  # half-open connections
    zmq.HEARTBEAT_IVL: 5_000,
    zmq.HEARTBEAT_TIMEOUT: 15_000,  # peers that stand still, with all that is queued for them
    zmq.HEARTBEAT_TTL: 30_000,
}


class Door:
    """A socket that clients come to, by a file or by tcp with keys."""

    def __init__(
        self,
        context: zmq.Context[zmq.Socket[bytes]],
        kind: int,
        name: str,
        address: str,
        *,
        role: Role,
        group: str | None,
        largest: int,
        options: Mapping[zmq.SocketOption, int],
    ) -> None:
        self.name = name
        self.address = address
        self.role: Role = role
        self.largest = largest
        self.is_ipc = address.startswith(_IPC)
        self.socket = context.socket(kind)
        self.socket.setsockopt(zmq.MAXMSGSIZE, largest + MARGIN)
        for option, value in {**_OPTIONS, **options}.items():
            self.socket.setsockopt(option, value)
        self.connections = Connections(context, self.socket, name)
        self._place = Place(Path(address.removeprefix(_IPC)), group) if self.is_ipc else None

    def open(self, gate: Gate | None) -> None:
        self.connections.start()
        try:
            if self._place is not None:
                self._place.bind(self.socket)
            else:
                self._open_to_the_network(gate)
        except (OSError, zmq.ZMQError) as error:
            raise ConfigProblem(
                f"the {self.name} socket cannot be opened at {self.address}: {error.strerror}",
                hint=f"free that address, or name another for `{self.name}` in `[bus]`",
            ) from None

    def is_lost(self) -> bool:
        """Whoever may write to the folder can put a socket of theirs in our place."""
        return self._place is not None and self._place.is_lost()

    def reopen(self) -> None:
        if self._place is not None:
            log.warning("%s was removed or replaced; it is made anew", self._place.path)
            self._place.bind(self.socket)

    def close(self) -> None:
        if self._place is not None:
            self._place.remove()
        self.connections.stop()
        self.socket.close()

    def _open_to_the_network(self, gate: Gate | None) -> None:
        if gate is None:
            raise ConfigProblem(
                f"{self.address} is open to the network and there are no keys",
                hint="set `curve` in `[bus]`, and make keys with `redrive keys new NAME`",
            )
        gate.guard(self.socket, self.role)
        self.socket.setsockopt(zmq.IPV6, "[" in self.address)
        self.socket.bind(self.address)
        self.address = self.socket.getsockopt_string(zmq.LAST_ENDPOINT)
