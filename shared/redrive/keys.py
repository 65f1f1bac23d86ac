"""Who may speak over tcp: CURVE keys, as files in one folder.

    server.public  server.secret     the daemon's own
    viewers/NAME.public              may look
    operators/NAME.public            may change
    NAME.secret                      for the client: moved to its machine, beside server.public

A right is a file, so removing the file takes the right away. The files are those of
`zmq.auth`; unlike its writer, ours never leaves a secret readable by others, not even for
the moment between creating a file and restricting it.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Literal

from msgspec import Struct

from redrive.errors import ConfigProblem, UsageProblem, WrongState

Role = Literal["viewer", "operator"]

SERVER = "server"
FOLDERS: dict[Role, str] = {"viewer": "viewers", "operator": "operators"}

_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}")
_LINE = re.compile(r"\s*(public|secret)-key\s*=\s*[\"']([!-~]{40})[\"']\s*")


class KeyPair(Struct, frozen=True):
    public: bytes
    secret: bytes


class Key(Struct, frozen=True, kw_only=True):
    """A key that is let in."""

    name: str
    role: Role
    public: str


def new(folder: Path, name: str, role: Role) -> list[Path]:
    """Make a key for a client, and the daemon's own if it has none; the files written."""
    if not _NAME.fullmatch(name) or name == SERVER:
        raise UsageProblem(
            f"{name!r} cannot be a key's name",
            hint="use letters, digits and _ - . (at most 64), and not `server`",
        )
    if any(key.name == name for key in known(folder)) or (folder / f"{name}.secret").exists():
        raise WrongState(
            f"there is a key named {name} in {folder}",
            hint="choose another name, or remove its files first",
        )
    for each in (folder, folder / FOLDERS[role]):
        each.mkdir(mode=0o700, parents=True, exist_ok=True)
    written: list[Path] = []
    if not (folder / f"{SERVER}.secret").exists():
        written += _write_pair(folder / f"{SERVER}.public", folder / f"{SERVER}.secret")
    allowed = folder / FOLDERS[role] / f"{name}.public"
    return written + _write_pair(allowed, folder / f"{name}.secret")


def known(folder: Path) -> list[Key]:
    """The keys that are let in, by name."""
    return sorted(_known(folder), key=lambda key: key.name)


def server_pair(folder: Path) -> KeyPair:
    """The daemon's own keys."""
    return _read_pair(folder / f"{SERVER}.secret")


def server_public(folder: Path) -> bytes:
    """By which a client knows that it speaks to the right daemon."""
    return _read(folder / f"{SERVER}.public")["public"]


def client_pair(folder: Path, environ: Mapping[str, str] = os.environ) -> KeyPair:
    """The client's keys: the file named by $REDRIVE_KEY, else the only one in the folder."""
    if named := environ.get("REDRIVE_KEY"):
        return _read_pair(Path(named))
    secrets = [path for path in sorted(folder.glob("*.secret")) if path.stem != SERVER]
    match secrets:
        case [only]:
            return _read_pair(only)
        case []:
            raise ConfigProblem(
                f"there is no client key in {folder}",
                hint="make one with `redrive keys new NAME` where the daemon runs",
            )
        case _:
            names = ", ".join(path.name for path in secrets)
            raise ConfigProblem(
                f"there are several client keys in {folder}: {names}",
                hint="name the file of yours in $REDRIVE_KEY",
            )


def _known(folder: Path) -> Iterator[Key]:
    for role, place in FOLDERS.items():
        for path in (folder / place).glob("*.public"):
            yield Key(name=path.stem, role=role, public=_read(path)["public"].decode())


def _write_pair(public_file: Path, secret_file: Path) -> list[Path]:
    import zmq

    public, secret = (key.decode() for key in zmq.curve_keypair())
    lines = f'curve\n    public-key = "{public}"\n'
    _write(
        secret_file,
        f'# Secret: whoever can read this is let in.\n{lines}    secret-key = "{secret}"\n',
        0o600,
    )
    _write(public_file, f"# A public key.\n{lines}", 0o644)
    return [public_file, secret_file]


def _write(path: Path, text: str, mode: int) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
    with open(os.open(path, flags, mode), "w") as file:
        file.write(text)


def _read_pair(path: Path) -> KeyPair:
    found = _read(path)
    if "secret" not in found:
        raise ConfigProblem(f"{path} holds no secret key", hint="use the file that ends in .secret")
    if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigProblem(f"{path} can be read by others", hint=f"`chmod 600 {path}`")
    return KeyPair(found["public"], found["secret"])


def _read(path: Path) -> dict[str, bytes]:
    try:
        lines = path.read_text("ascii", "replace").splitlines()
        mode = path.stat().st_mode
    except OSError as error:
        raise ConfigProblem(
            f"the key {path} cannot be read: {error.strerror}",
            hint="`redrive keys new NAME` makes keys, `redrive keys list` shows them",
        ) from None
    if mode & (stat.S_IWGRP | stat.S_IWOTH):
        raise ConfigProblem(f"{path} can be written by others", hint=f"`chmod go-w {path}`")
    found = {match[1]: match[2].encode() for match in map(_LINE.fullmatch, lines) if match}
    if "public" not in found:
        raise ConfigProblem(f"{path} holds no key", hint="`redrive keys new NAME` makes one")
    return found
