"""Every difference between SQLite and PostgreSQL, once there are connections.

A batch of rows travels as one JSON parameter and is taken apart inside the database, with the
interpreter free meanwhile; `rows()` is how a statement asks for it.
"""

from __future__ import annotations

import errno
import logging
import os
import shutil
import sqlite3
import tempfile
from enum import StrEnum
from pathlib import Path

from sqlalchemy import Connection, make_url, text
from sqlalchemy.engine.interfaces import DBAPICursor
from sqlalchemy.exc import DBAPIError, OperationalError

from redrived.store import connections
from redrived.store.connections import BUSY_TIMEOUT, LOG_SIZE, Durability, below
from redrived.store.filesystem import refuse_network
from redrived.store.ownership import refuse_foreign
from redrived.store.rows import from_json

log = logging.getLogger(__name__)

PROBE = 256 * 1024  # bytes that must find room before a full disk counts as mended
FREE_PAGES = 500  # of SQLite's file: fewer are left for new rows, so many are given back at once
LOG_STEP = 1024 * 1024  # bytes that it is lengthened by at once
AMPLE = 16 * LOG_SIZE  # bytes free on a disk that can spare as many for a log


class Trouble(StrEnum):
    """What a database can suffer from, as far as it changes what we do."""

    BUSY = "busy"  # somebody else holds a lock; the same again in a moment
    GONE = "gone"  # no connection; again once there is one
    MISSING = "missing"  # the file; again once it is back
    FULL = "full"  # no space; new work is refused until there is
    READ_ONLY = "read_only"  # likewise
    IO = "io"  # the disk does not answer as it should: stop
    CORRUPT = "corrupt"  # stop, and restore

    @property
    def lasts(self) -> bool:
        """Whether it stays until somebody does something about the file itself."""
        return self in (Trouble.IO, Trouble.CORRUPT)


_WORDS = {
    Trouble.BUSY: "another program holds the database",
    Trouble.GONE: "the database does not answer",
    Trouble.MISSING: "{file} is missing, or is another file by now: move it back, or restart",
    Trouble.FULL: "the disk is full",
    Trouble.READ_ONLY: "the database is read only",
    Trouble.IO: "the disk reports errors",
    Trouble.CORRUPT: "the database file is damaged",
}

_SQLITE_TROUBLES = {
    sqlite3.SQLITE_BUSY: Trouble.BUSY,
    sqlite3.SQLITE_LOCKED: Trouble.BUSY,
    sqlite3.SQLITE_PROTOCOL: Trouble.BUSY,
    sqlite3.SQLITE_FULL: Trouble.FULL,
    sqlite3.SQLITE_READONLY: Trouble.READ_ONLY,
    sqlite3.SQLITE_PERM: Trouble.READ_ONLY,
    sqlite3.SQLITE_CANTOPEN: Trouble.GONE,
    sqlite3.SQLITE_IOERR: Trouble.IO,
    sqlite3.SQLITE_IOERR_SHMSIZE: Trouble.FULL,  # no space for the index of the log
    sqlite3.SQLITE_CORRUPT: Trouble.CORRUPT,
    sqlite3.SQLITE_NOTADB: Trouble.CORRUPT,
}

# SQLSTATE, by its first characters, the longest first.
_POSTGRESQL_TROUBLES = (
    ("40", Trouble.BUSY),  # serialisation failure, deadlock
    ("55P03", Trouble.BUSY),  # lock timeout
    ("57014", Trouble.BUSY),  # statement timeout
    ("53100", Trouble.FULL),
    ("25006", Trouble.READ_ONLY),
    ("58", Trouble.IO),
    ("XX001", Trouble.CORRUPT),
    ("XX002", Trouble.CORRUPT),
    ("57P", Trouble.GONE),
    ("08", Trouble.GONE),
    ("53", Trouble.GONE),  # too many connections, out of memory
)


_BEGIN = text(
    "SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000000 AS bigint),"
    " CAST(pg_current_xact_id() AS text)"
)
_LOCK = text("SELECT pg_advisory_xact_lock(hashtext(:what))")
_STATUS = text("SELECT pg_xact_status(CAST(CAST(:name AS text) AS xid8))")


def as_text(data: bytes) -> str:
    return data.decode(errors="replace")


def said(error: BaseException) -> object:
    """What the database itself said, without the statement."""
    return getattr(error, "orig", error)


class Unreachable(Exception):
    """The database is not there to be asked, for a reason no driver tells."""


class Misplaced(Exception):
    """The file is not where it was; who has it open would not see that."""


class Database:
    """Where the store lies, and how to speak to it."""

    def __init__(self, url: str, durability: Durability = "full") -> None:
        self.url = make_url(url)
        self.durability: Durability = durability
        self.is_sqlite = self.url.get_backend_name() == "sqlite"
        self._file = str(self.path)
        self._inode: int | None = None
        self._may_lengthen = True
        if self.is_sqlite:
            self.writers, self.readers = connections.to_sqlite(self.path, durability)
            self.skip_locked = ""
        else:
            self.writers, self.readers = connections.to_postgresql(url, durability)
            self.skip_locked = " FOR UPDATE SKIP LOCKED"

    @property
    def path(self) -> Path:
        """The file of a SQLite store."""
        return Path(self.url.database or "redrive.db")

    def rows(self, *columns: str) -> str:
        """A subquery over the `:rows` parameter, a JSON array of arrays.

        Each column is "name" (text) or "name type"; `n` numbers the rows from 0.
        """
        return from_json(self.is_sqlite, columns)

    def make_room(self) -> None:
        """Create the file of a SQLite store for nobody else; -wal and -shm take its mode."""
        if self.is_sqlite:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            refuse_network(self.path)
            refuse_foreign(self.path)
            try:
                os.close(os.open(self.path, os.O_CREAT | os.O_EXCL, 0o600))
            except FileExistsError:
                pass

    def has_room(self) -> bool:
        """Whether a little more can be written beside a SQLite store; others tell by themselves."""
        if not self.is_sqlite:
            return True
        try:
            with tempfile.TemporaryFile(dir=self.path.parent) as probe:
                os.posix_fallocate(probe.fileno(), 0, PROBE)
        except OSError as error:
            return error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS)
        return True

    def lock(self, connection: Connection, what: str) -> None:
        """Keep other nodes from the same until the commit; SQLite's transaction sees to that."""
        if not self.is_sqlite:
            connection.execute(_LOCK, {"what": f"redrive {what}"})

    def met_no_text(self, error: BaseException) -> bool:
        """Whether SQLite's driver gave up at a text that is no UTF-8: SQLite itself holds it."""
        raised = said(error)
        return isinstance(raised, sqlite3.OperationalError) and not hasattr(
            raised, "sqlite_errorcode"
        )

    def be_lenient(self, connection: Connection) -> None:
        """From now on read what is no text as far as it goes, at a little cost for all that is."""
        below(connection).text_factory = as_text
        log.warning("the store has text that is no UTF-8: it is read with \ufffd in its place")

    def driver(self, connection: Connection) -> sqlite3.Connection | None:
        """SQLite's own connection below one of SQLAlchemy's; None: it is PostgreSQL's."""
        return below(connection) if self.is_sqlite else None

    def begin(self, connection: Connection, machine: int) -> tuple[int, str | None]:
        """The instant of a unit of work, the database's where machines share it; and its name.

        By that name `has_committed` knows it, should the answer to its commit never come.
        """
        if self.is_sqlite:
            self._look_for_file()
            return machine, None
        now, name = connection.execute(_BEGIN).one()
        return int(now), str(name)

    def has_committed(self, connection: Connection, name: str) -> bool:
        """Whether an earlier unit of work is on disk."""
        status = connection.execute(_STATUS, {"name": name}).scalar_one()
        if status == "in progress":
            raise Unreachable("it is still busy with what was asked before")
        return bool(status == "committed")

    def _look_for_file(self) -> None:
        # SQLite would go on writing into a file that has no name any more.
        try:
            found = os.stat(self._file).st_ino
        except OSError:  # or nobody can look any more, as where its folder is another
            found = None
        self._inode = self._inode or found
        if found is None or found != self._inode:
            raise Misplaced(f"{self.path} is not the file it was")

    def in_words(self, trouble: Trouble) -> str:
        return _WORDS[trouble].format(file=self._file)

    def trouble(self, error: BaseException) -> Trouble | None:
        """What kind of trouble an exception of the driver is; None: not the database's."""
        if isinstance(error, Unreachable):
            return Trouble.GONE
        if isinstance(error, Misplaced):
            return Trouble.MISSING
        said = error.orig if isinstance(error, DBAPIError) else error
        if isinstance(said, sqlite3.Error):
            code = getattr(said, "sqlite_errorcode", None)
            if code is None:
                return None
            kind = _SQLITE_TROUBLES.get(code) or _SQLITE_TROUBLES.get(code & 0xFF)
            if kind is Trouble.GONE and not os.path.exists(self._file):
                return Trouble.MISSING
            # SQLite tells of a used-up quota as of a broken disk.
            return Trouble.FULL if kind is Trouble.IO and not self.has_room() else kind
        if not isinstance(error, DBAPIError):
            return None
        if error.connection_invalidated:
            return Trouble.GONE
        state = getattr(error.orig, "sqlstate", None)
        if state is None:  # the driver itself gave up: no server spoke
            return Trouble.GONE if isinstance(error, OperationalError) else None
        found = (trouble for prefix, trouble in _POSTGRESQL_TROUBLES if state.startswith(prefix))
        return next(found, None)

    def checkpoint(self) -> None:
        """Move the whole write-ahead log into the file; only where the writer stands still."""
        if not self.is_sqlite:
            return
        try:
            raw = self.writers.raw_connection()
            raw.cursor().execute("PRAGMA wal_checkpoint(TRUNCATE)")
            raw.close()
        except sqlite3.Error as error:  # it is all in the log, and read there at the next start
            log.warning("the store's log could not be moved into its file: %s", error)

    def tidy(self) -> bool:
        """Bring the log to its length and give back what was deleted; True: there is more to do.

        It waits for no reader: what one of them still looks at is moved another time.
        """
        if not self.is_sqlite:
            return False
        raw = self.writers.raw_connection()
        try:
            cursor = raw.cursor()
            cursor.execute("PRAGMA busy_timeout = 0")
            if self._lengthen_log(cursor):
                return True
            (free,), (all_pages,) = (
                cursor.execute(f"PRAGMA {name}").fetchone()
                for name in ("freelist_count", "page_count")
            )
            has_more = bool(free > max(FREE_PAGES, all_pages // 10))
            if has_more:
                # `execute` would take one step of it, and so give back one page.
                cursor.executescript(f"PRAGMA incremental_vacuum({FREE_PAGES})")
            cursor.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
            return has_more
        finally:
            raw.cursor().execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT * 1000)}")
            raw.close()

    def _lengthen_log(self, cursor: DBAPICursor) -> bool:
        """Append zeros to a log that is not as long as it becomes; whether it was not.

        A sync that makes a file longer writes the filesystem's journal, too, and takes twice
        as long. So the log gets its length in moments without work, and keeps it while the
        daemon runs: it is begun anew from its start, and the salts in its head say that what
        lies behind its end is not of it.
        """
        if not self._may_lengthen or shutil.disk_usage(self._file).free < AMPLE:
            return False
        cursor.execute("BEGIN IMMEDIATE")  # nobody else appends to it meanwhile
        try:
            with open(f"{os.path.realpath(self._file)}-wal", "r+b", buffering=0) as file:
                missing = LOG_SIZE - file.seek(0, os.SEEK_END)
                if missing <= 0:
                    return False
                file.write(bytes(min(missing, LOG_STEP)))
                os.fdatasync(file.fileno())
        except OSError as error:  # a quota, perhaps; it does as it is
            self._may_lengthen = False
            log.info("the store's log stays as long as it is: %s", error)
            return False
        finally:
            cursor.execute("ROLLBACK")
        return True

    def close(self) -> None:
        # Readers first: the last connection to close checkpoints, and that is the writer's.
        self.readers.dispose()
        self.writers.dispose()
