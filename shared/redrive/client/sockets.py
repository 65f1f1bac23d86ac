"""The options that every socket of a client has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import cast

import zmq

from redrive import keys
from redrive.protocol.envelope import MAX_MESSAGE

HANDSHAKE = 5_000  # milliseconds; who listens and does not even greet is not waited for longer


def open_socket(kind: int, address: str, key_folder: str | None) -> zmq.Socket[bytes]:
    context = cast("zmq.Context[zmq.Socket[bytes]]", zmq.Context.instance())
    socket = context.socket(kind)
    socket.set(zmq.LINGER, 0)
    # libzmq ends the process (libzmq#4841) when a heartbeat falls due on a connection that ended
    # while its queue was full. Answers are never more than were asked for; a SUB may be read by
    # nobody for hours, and whoever follows notices silence himself.
    if kind == zmq.DEALER:
        socket.set(zmq.RCVHWM, 0)
        socket.set(zmq.HEARTBEAT_IVL, 5_000)
        socket.set(zmq.HEARTBEAT_TIMEOUT, 15_000)
        socket.set(zmq.HEARTBEAT_TTL, 30_000)
        socket.set(zmq.IMMEDIATE, 1)  # a SUB with this option never sends its subscriptions
    else:
        socket.set(zmq.RCVHWM, 10_000)
        socket.set(zmq.TCP_KEEPALIVE, 1)
        socket.set(zmq.TCP_KEEPALIVE_IDLE, 5)
        socket.set(zmq.TCP_KEEPALIVE_INTVL, 5)
        socket.set(zmq.TCP_KEEPALIVE_CNT, 3)
    socket.set(zmq.SNDHWM, 256)
    socket.set(zmq.MAXMSGSIZE, MAX_MESSAGE)
    socket.set(zmq.HANDSHAKE_IVL, HANDSHAKE)
    # Many clients lose a daemon at the same moment; they shall not come back at the same one.
    socket.set(zmq.RECONNECT_IVL, random.randint(100, 400))
    socket.set(zmq.RECONNECT_IVL_MAX, 2_000)
    if address.startswith("tcp://") and key_folder is not None:
        pair = keys.client_pair(Path(key_folder))
        socket.curve_publickey = pair.public
        socket.curve_secretkey = pair.secret
        socket.curve_serverkey = keys.server_public(Path(key_folder))
    return socket
