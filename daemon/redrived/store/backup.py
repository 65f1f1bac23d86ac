"""A copy of a SQLite store that is being written to, and what makes a file fit to be one.

The copy is of one instant: a connection of its own reads one snapshot while the writer goes
on. It is made beside its place, checked, and only then given its name.
"""

from __future__ import annotations

import os
import sqlite3
from contextlib import closing
from pathlib import Path

from msgspec import Struct

from redrive.errors import RedriveError, WrongState
from redrived.store.ownership import has_our_mark
from redrived.store.schema import known_versions


class Copy(Struct, frozen=True):
    path: str
    size: int  # bytes
    jobs: int
    seq: int  # of the newest event in it


def back_up(store: Path, target: Path) -> Copy:
    """Write a new file; an existing one is never touched. Slow: not for the main loop."""
    if target.exists() or target.is_symlink():
        raise WrongState(f"{target} exists already", hint="name a new file")
    partial = target.with_name(f"{target.name}.partial")
    try:
        os.close(os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except OSError as error:
        raise RedriveError(
            f"{partial} cannot be written: {error.strerror}",
            hint="the daemon writes it, on its own machine and as its own user",
        ) from error
    try:
        _copy(store, partial)
        copy = examine(partial)
        sync(partial)
        os.link(partial, target)  # unlike a rename, it replaces nobody's file
        sync(target.parent)
        return Copy(str(target), copy.size, copy.jobs, copy.seq)
    except (OSError, sqlite3.Error) as error:
        raise RedriveError(f"the store could not be copied to {target}: {error}") from error
    finally:
        partial.unlink(missing_ok=True)


def examine(path: Path) -> Copy:
    """What a copy holds; refused unless it is whole, ours, and of a schema we know."""
    if not path.exists():
        raise RedriveError(f"there is no file {path}", hint="name one that `redrive backup` made")
    try:
        with closing(_open(path)) as connection:
            (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
            if found != "ok":
                raise RedriveError(f"{path} is damaged: {found}", hint="take an older backup")
            if not has_our_mark(connection):
                raise RedriveError(
                    f"{path} is a database of another program",
                    hint="`redrive backup FILE` makes one of ours",
                )
            (version,) = connection.execute("SELECT version_num FROM alembic_version").fetchone()
            (jobs,) = connection.execute("SELECT count(*) FROM jobs").fetchone()
            (seq,) = connection.execute("SELECT value FROM counters WHERE name='seq'").fetchone()
    except sqlite3.Error as error:
        raise RedriveError(
            f"{path} is no store of redrive: {error}", hint="`redrive backup FILE` makes one"
        ) from error
    if version not in known_versions():
        raise RedriveError(
            f"{path} was written by a newer redrive (schema {version})",
            hint="install that version, or take another backup",
        )
    return Copy(str(path), path.stat().st_size, jobs, seq)


def sync(path: Path) -> None:
    """See to it that a file, or the names in a folder, survive a power cut."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _copy(store: Path, partial: Path) -> None:
    with closing(_open(store)) as source, closing(sqlite3.connect(partial)) as target:
        # All pages in one step: in several, every commit in between would start it anew.
        source.backup(target, pages=-1)
        target.execute("PRAGMA journal_mode = DELETE")  # one file, complete by itself


def _open(path: Path) -> sqlite3.Connection:
    connection = sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    connection.execute("PRAGMA trusted_schema = OFF")
    connection.execute("PRAGMA query_only = ON")
    return connection
