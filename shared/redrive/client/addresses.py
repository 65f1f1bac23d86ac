"""Where the daemon listens, and what can be said at once when nobody does."""

from __future__ import annotations

import errno
import logging
import os
import re
import socket
from pathlib import Path

from msgspec import Struct

from redrive.config import Config, find_config, load_client, runtime_dir
from redrive.config.places import LONGEST_SOCKET_PATH
from redrive.errors import ConfigProblem, DaemonUnreachable, NotAllowed

log = logging.getLogger(__name__)

_IPC = "ipc://"
_EVERYWHERE = re.compile(r"(?<=^tcp://)(?:\*|0\.0\.0\.0)(?=:)")


class Addresses(Struct, frozen=True, kw_only=True):
    """The three sockets, and the folder of keys that tcp needs."""

    query: str
    control: str
    events: str
    keys: str | None = None
    config: str | None = None  # the file they were read from

    @property
    def hint(self) -> str:
        """What to do when nobody is there."""
        if self.config is None:
            return "start it with `redrived --config FILE`, or `redrive up`"
        return (
            f"start it with `redrived --config {self.config}` or `redrive up`,"
            " or point `--config` at the one it uses"
        )


def addresses_of(config: Addresses | Config | str | os.PathLike[str] | None) -> Addresses:
    """What a client was given, as addresses: nothing means the config that is found."""
    match config:
        case Addresses():
            return config
        case Config():
            return _configured(config)
        case None:
            return _configured(_read(find_config(None)))
        case _:
            return _configured(_read(find_config(Path(config))))


def _read(path: Path) -> Config:
    loaded = load_client(path)
    for problem in loaded.problems:
        log.warning("%s; the daemon is asked all the same", problem)
    return loaded.config


def _configured(config: Config) -> Addresses:
    folder = runtime_dir(config).absolute()
    return Addresses(
        query=_address(config.bus.query, folder / "query"),
        control=_address(config.bus.control, folder / "control"),
        events=_address(config.bus.events, folder / "events"),
        keys=config.bus.curve,
        config=config.path,
    )


def _address(given: str | None, default: Path) -> str:
    """A daemon that listens on every interface is reached on this machine by loopback."""
    address = _EVERYWHERE.sub("127.0.0.1", given or f"{_IPC}{default}")
    path = address.removeprefix(_IPC)
    if path != address and len(os.fsencode(path)) > LONGEST_SOCKET_PATH:
        raise ConfigProblem(
            f"the path of the socket {path} is longer than {LONGEST_SOCKET_PATH} bytes",
            hint="choose a shorter `runtime_dir` in [daemon]",
        )
    return address


def knock(address: str, hint: str) -> None:
    """Raise what a dead ipc socket says at once; libzmq would go on trying without a word."""
    path = address.removeprefix(_IPC)
    if path == address:
        return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as door:
        door.setblocking(False)
        try:
            door.connect(path)
        except BlockingIOError:
            return  # somebody listens, and is busy
        except PermissionError:
            raise NotAllowed(
                f"you may not open the socket {path}",
                hint="ask to be let into the group that `viewers` or `operators` in [bus] names",
            ) from None
        except OSError as error:
            missing = error.errno in (errno.ENOENT, errno.ENOTDIR)
            what = "there is no such socket" if missing else "nobody listens there"
            raise DaemonUnreachable(f"no daemon at {path}: {what}", hint=hint) from None
