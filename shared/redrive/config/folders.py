"""Where things lie: the config file itself, the state, the sockets, the database."""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from pathlib import Path

from redrive.config.sections import Config
from redrive.errors import ConfigProblem

_SQLITE = "sqlite:///"


def find_config(explicit: str | Path | None, environ: Mapping[str, str] = os.environ) -> Path:
    """The config file to read; one that was named must be there."""
    if explicit == "":  # a variable that is not set; another config may be another daemon
        raise ConfigProblem(
            "the name of the config is empty", hint="leave out `--config`, or name one"
        )
    named = explicit or environ.get("REDRIVE_CONFIG")
    places = (
        [Path(named)]
        if named
        else [
            Path("config.toml"),
            Path("~/.config/redrive/config.toml").expanduser(),
            Path("/etc/redrive/config.toml"),
        ]
    )
    for place in places:
        if _may_be_there(place):
            return place
    raise ConfigProblem(
        "there is no config at " + ", ".join(str(place) for place in places),
        hint="name one with `--config FILE` or $REDRIVE_CONFIG",
    )


def _may_be_there(place: Path) -> bool:
    """What cannot be looked at is not passed over: reading it says why."""
    try:
        place.stat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    except (OSError, ValueError):
        return True
    return True


def node_name(config: Config) -> str:
    return config.daemon.name or socket.gethostname()


def default_state_dir(environ: Mapping[str, str] = os.environ) -> Path:
    if given := environ.get("STATE_DIRECTORY"):
        return _first(given)
    if home := environ.get("XDG_STATE_HOME"):
        return Path(home, "redrive")
    return Path("~/.local/state/redrive").expanduser()


def state_dir(config: Config, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the store and the logs."""
    return Path(config.daemon.state_dir or default_state_dir(environ))


def default_runtime_dir(environ: Mapping[str, str] = os.environ) -> Path | None:
    if given := environ.get("RUNTIME_DIRECTORY"):
        return _first(given)
    if home := environ.get("XDG_RUNTIME_DIR"):
        return Path(home, "redrive")
    return None


def runtime_dir(config: Config, environ: Mapping[str, str] = os.environ) -> Path:
    """The folder of the sockets and the lock.

    Without a session (cron, su) there is no default; `run` in the state folder is as private
    and is found by the daemon and its clients alike.
    """
    given = config.daemon.runtime_dir or default_runtime_dir(environ)
    return Path(given or state_dir(config, environ) / "run")


def store_url(config: Config, environ: Mapping[str, str] = os.environ) -> str:
    """The database's URL, with a relative SQLite path put under the state folder."""
    url = config.store.url
    if not url.startswith(_SQLITE):
        return url
    return _SQLITE + str(state_dir(config, environ).absolute() / url.removeprefix(_SQLITE))


def _first(folders: str) -> Path:
    """systemd may hand over several, with colons between them."""
    return Path(folders.partition(":")[0])
