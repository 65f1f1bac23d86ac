"""What can be wrong on this machine, seen without a daemon, and what to do about it.

Nothing here opens the store: that is the daemon's alone, and it has checks of its own.
"""

from __future__ import annotations

import os
import platform
import shutil
import sqlite3
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from redrive import __version__
from redrive.config import Config, Loaded, runtime_dir, state_dir, store_url
from redrive.filesystems import is_over_a_network, kind_of
from redrive.interpreters import pool_checks
from redrive.programs import program_checks
from redrive.protocol.rows import Check
from redrive.room import room_check

_BUILT_AFTER = 1_767_225_600  # 2026-01-01, in Unix time: no clock is right that is before it
# SQLite from which on a release line has the mended WAL; others have it from 3.51.3 on.
_MENDED = {(3, 44): (3, 44, 6), (3, 50): (3, 50, 7)}


def local_checks(loaded: Loaded, environ: Mapping[str, str] = os.environ) -> list[Check]:
    config = loaded.config
    folder = state_dir(config, environ)
    return [
        _versions(),
        *([_sqlite()] if store_url(config, environ).startswith("sqlite") else []),
        _clock(),
        *_folders(config, environ),
        *_store_file(config, environ),
        _space(folder),
        *pool_checks(config),
        *program_checks(config, environ),
    ]


def _versions() -> Check:
    text = f"redrive {__version__} on Python {platform.python_version()}, {platform.platform()}"
    return Check(name="versions", ok=True, text=text)


def _sqlite() -> Check:
    """WAL databases can be damaged by two connections that checkpoint, up to 3.51.2."""
    found = sqlite3.sqlite_version_info
    is_mended = found >= _MENDED.get(found[:2], (3, 51, 3))
    text = f"SQLite {sqlite3.sqlite_version}"
    if not is_mended:
        text += (
            " can damage a store that several programs write to; the daemon is safe, for only"
            " one of its connections writes. Let nothing else open the store"
        )
    return Check(name="sqlite", ok=True, text=text)


def _clock() -> Check:
    return Check(
        name="clock",
        ok=time.time() > _BUILT_AFTER,
        text=time.strftime("it is %Y-%m-%d %H:%M:%S UTC", time.gmtime()),
        hint="set the machine's clock, and let it be kept by NTP",
    )


def _folders(config: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    sockets = runtime_dir(config, environ)
    for name, folder in (("state_dir", state_dir(config, environ)), ("runtime_dir", sockets)):
        yield _folder(name, folder)
        kind = kind_of(folder)
        if is_over_a_network(kind) or kind == "9p":  # which may be local, as in some containers
            yield Check(
                name=name,
                ok=False,
                text=f"{folder} is on a network file system ({kind})",
                hint="locks and sockets do not work there as they must; use a local disk",
            )


def _folder(name: str, folder: Path) -> Check:
    try:
        facts = folder.stat()
    except PermissionError:
        return Check(name=name, ok=True, text=f"{folder} is not yours to look at")
    except OSError:  # it is not there, or something else is in its place
        facts = None
    is_ours = facts is None or os.geteuid() in (0, facts.st_uid)
    if is_ours and (error := _trouble(folder)) is not None:
        return Check(
            name=name,
            ok=False,
            text=f"{folder} cannot be {'made' if facts is None else 'used'}: {error.strerror}",
            hint=f"let `{name}` in [daemon] name a folder that the daemon's user may write to",
        )
    if facts is None:
        return Check(name=name, ok=True, text=f"{folder} will be made by the daemon")
    if facts.st_mode & stat.S_IWOTH or (name == "state_dir" and facts.st_mode & 0o077):
        return Check(
            name=name,
            ok=False,
            text=f"{folder} is open to others (mode {stat.S_IMODE(facts.st_mode):o})",
            hint=f"chmod 700 {folder}",
        )
    return Check(name=name, ok=True, text=f"{folder} belongs to uid {facts.st_uid}")


def _trouble(folder: Path) -> OSError | None:
    """Why nothing can be made there, if so: tried, for modes do not tell of every reason."""
    try:
        os.rmdir(tempfile.mkdtemp(prefix=".redrive-", dir=_there(folder)))
    except OSError as error:
        return error
    return None


def _there(folder: Path) -> Path:
    """The folder, or what there is of the way to it."""
    return next(place for place in (folder, *folder.absolute().parents) if os.path.lexists(place))


def _store_file(config: Config, environ: Mapping[str, str]) -> Iterator[Check]:
    url = store_url(config, environ)
    if not url.startswith("sqlite:///"):
        return
    path = Path(url.removeprefix("sqlite:///"))
    try:
        facts = path.stat()
        folder = path.parent.stat()
    except OSError:
        return  # nothing was stored yet, or it is not ours to see
    if facts.st_mode & 0o077:
        yield Check(
            name="store",
            ok=False,
            text=f"{path} can be read by others (mode {stat.S_IMODE(facts.st_mode):o})",
            hint=f"chmod 600 {path}*",
        )
    elif facts.st_uid not in (folder.st_uid, 0):
        yield Check(
            name="store",
            ok=False,
            text=f"{path} belongs to uid {facts.st_uid}, its folder to uid {folder.st_uid}",
            hint="make it the daemon's own, or ask where it came from",
        )
    else:
        yield Check(name="store", ok=True, text=f"{path} has {facts.st_size / 1e6:.1f} MB")


def _space(folder: Path) -> Check:
    there = _there(folder)
    usage = shutil.disk_usage(there)
    return room_check(str(there), usage.free, usage.total, is_ours=there == folder)
