"""Who is at the other end of a socket, as the kernel or the key says; never as they say."""

from __future__ import annotations

import pwd
from functools import lru_cache

import zmq
from msgspec import Struct

from redrive.keys import Role


class Asker(Struct, frozen=True, kw_only=True):
    """Who asks for something, and what they may ask for."""

    who: str  # "anna", "uid:1000" (an uid without a name), "key:anna"
    role: Role
    uid: int | None = None
    pid: int | None = None


class Credentials(Struct, frozen=True):
    """What the kernel knows of a local peer."""

    uid: int
    pid: int


def asker_of(frame: zmq.Frame, role: Role, *, is_ipc: bool) -> Asker | None:
    """None for somebody who was gone before the kernel could be asked who it is."""
    if not is_ipc:
        name = _told(frame, "User-Id")
        return Asker(who=f"key:{name}", role=role) if name else None
    address = _told(frame, "Peer-Address")
    return _local_asker(_credentials(address), role) if address else None


def address_of(frame: zmq.Frame) -> str | None:
    """One for each local process, or for each network address."""
    return _told(frame, "Peer-Address")


def sender_of(frame: zmq.Frame, *, is_ipc: bool) -> Credentials | str | None:
    """The process or the network address a frame came from."""
    address = _told(frame, "Peer-Address")
    return _credentials(address) if is_ipc and address else address


def _told(frame: zmq.Frame, name: str) -> str | None:
    """What libzmq knows of a frame's connection."""
    try:
        return str(frame.get(name))
    except zmq.ZMQError:
        return None


def _credentials(address: str) -> Credentials:
    """libzmq asks for SO_PEERCRED and writes it down as HOST:UID:GID:PID."""
    _, uid, _, pid = address.rsplit(":", 3)
    return Credentials(int(uid), int(pid))


@lru_cache(maxsize=256)
def _local_asker(known: Credentials, role: Role) -> Asker:
    return Asker(who=user_name(known.uid), role=role, uid=known.uid, pid=known.pid)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid:{uid}"
