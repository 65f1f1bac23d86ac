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


def asker_on_ipc(frame: zmq.Frame, role: Role) -> Asker:
    return _local_asker(credentials(frame), role)


def asker_on_tcp(frame: zmq.Frame, role: Role) -> Asker:
    return Asker(who=f"key:{frame.get('User-Id')}", role=role)


def credentials(frame: zmq.Frame) -> Credentials:
    """libzmq asks for SO_PEERCRED and writes it down as HOST:UID:GID:PID."""
    _, uid, _, pid = str(frame.get("Peer-Address")).rsplit(":", 3)
    return Credentials(int(uid), int(pid))


@lru_cache(maxsize=256)
def _local_asker(known: Credentials, role: Role) -> Asker:
    return Asker(who=user_name(known.uid), role=role, uid=known.uid, pid=known.pid)


def user_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid:{uid}"
