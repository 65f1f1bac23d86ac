"""The options that every socket of a client has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import zmq

from redrive import keys
from redrive.protocol.envelope import MAX_MESSAGE


def open_socket(kind: int, address: str, key_folder: str | None) -> zmq.Socket[bytes]:
    context = cast("zmq.Context[zmq.Socket[bytes]]", zmq.Context.instance())
    socket = context.socket(kind)
    socket.set(zmq.LINGER, 0)
    if kind == zmq.DEALER:  # a SUB with this option never sends its subscriptions
        socket.set(zmq.IMMEDIATE, 1)
    socket.set(zmq.SNDHWM, 256)
    socket.set(zmq.RCVHWM, 10_000)
    socket.set(zmq.MAXMSGSIZE, MAX_MESSAGE)
    socket.set(zmq.HANDSHAKE_IVL, 5_000)
    socket.set(zmq.HEARTBEAT_IVL, 5_000)
    socket.set(zmq.HEARTBEAT_TIMEOUT, 15_000)
    socket.set(zmq.HEARTBEAT_TTL, 30_000)
    # Many clients lose a daemon at the same moment; they shall not come back at the same one.
    socket.set(zmq.RECONNECT_IVL, random.randint(100, 400))
    socket.set(zmq.RECONNECT_IVL_MAX, 2_000)
    if address.startswith("tcp://") and key_folder is not None:
        pair = keys.client_pair(Path(key_folder))
        socket.curve_publickey = pair.public
        socket.curve_secretkey = pair.secret
        socket.curve_serverkey = keys.server_public(Path(key_folder))
    return socket
