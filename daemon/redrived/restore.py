"""`python -m redrived.restore --config FILE BACKUP`: go back to a backup, while no daemon runs.

What was there is kept beside it, under a name with the time. `redrive restore` is the way
people start this.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sqlite3
import sys
import time
from contextlib import closing, suppress
from itertools import count
from pathlib import Path

import msgspec
from msgspec import Struct

from redrive.config import Config, find_config, load, state_dir, store_url
from redrive.errors import AlreadyRunning, RedriveError
from redrived.instance_lock import InstanceLock
from redrived.store.backup import Copy, examine, sync
from redrived.store.database import Database


class Restored(Struct, frozen=True):
    copy: Copy
    store: str
    aside: str | None  # what was there before


def restore(config: Config, backup: Path) -> Restored:
    """Put a backup in the place of the store; refused while a daemon uses it."""
    lock = InstanceLock(Path(state_dir(config, os.environ)))
    database = Database(store_url(config, os.environ))
    if not database.is_sqlite:
        raise RedriveError(
            "the store is PostgreSQL, which redrive does not restore",
            hint="stop every daemon and use `pg_restore --clean`",
        )
    try:
        lock.take()
    except AlreadyRunning as problem:
        problem.hint = "nothing was restored: stop it first, with `redrive drain` or systemd"
        raise
    try:
        copy = examine(backup)
        fresh = _copied(backup, database.path)  # first: it may find no room
        aside = _put_aside(database.path)
        fresh.rename(database.path)
        sync(database.path.parent)
        return Restored(copy, str(database.path), aside)
    finally:
        lock.release()
        database.close()


def _copied(backup: Path, store: Path) -> Path:
    """The backup, whole and on disk, beside the place it is for."""
    fresh = store.with_name(f"{store.name}.restoring")
    try:
        fresh.unlink(missing_ok=True)
        with (
            backup.open("rb") as source,
            open(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as target,
        ):
            shutil.copyfileobj(source, target, 1 << 20)
        sync(fresh)
    except OSError as error:
        with suppress(OSError):
            fresh.unlink(missing_ok=True)
        raise RedriveError(
            f"{backup} cannot be copied to {fresh}: {error.strerror}",
            hint="nothing was changed; look at the rights and the room there",
        ) from error
    return fresh


def _put_aside(store: Path) -> str | None:
    if not store.exists():
        return None
    _take_in_log(store)
    aside = _unused(f"{store}.before-{time.strftime('%Y%m%dT%H%M%S', time.gmtime())}")
    for suffix in ("-wal", "-shm", ""):
        file = store.with_name(store.name + suffix)
        if file.exists():
            file.rename(aside.with_name(aside.name + suffix))
    return str(aside)


def _unused(name: str) -> Path:
    """A path that is nobody's yet: another restore may have been made in the same second."""
    names = (name if n == 1 else f"{name}-{n}" for n in count(1))
    return next(path for path in map(Path, names) if not path.exists())


def _take_in_log(store: Path) -> None:
    """After a crash the newest commits are in the log beside the file; one file is safer."""
    try:
        with closing(sqlite3.connect(store)) as connection:
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    except sqlite3.Error:
        pass  # damaged, and perhaps why it is replaced: both files are kept


def main() -> None:
    parser = argparse.ArgumentParser(prog="redrive restore", description=__doc__)
    parser.add_argument("--config", metavar="FILE")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("backup", metavar="BACKUP", type=Path)
    options = parser.parse_args()
    os.umask(0o077)
    try:
        config = load(find_config(options.config, os.environ)).config
        restored = restore(config, options.backup)
    except RedriveError as problem:
        print(f"redrive: {problem.message}", file=sys.stderr)
        if problem.hint:
            print(f"  {problem.hint}", file=sys.stderr)
        sys.exit(problem.exit_code)
    if options.json:
        print(msgspec.json.encode(restored).decode())
        return
    print(f"{restored.store} holds {restored.copy.jobs} jobs, up to event {restored.copy.seq}")
    if restored.aside:
        print(f"what was there is kept as {restored.aside}")


if __name__ == "__main__":
    main()
