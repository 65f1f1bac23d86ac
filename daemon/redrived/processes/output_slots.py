"""The files that commands write to while they run; silent ones pass them on empty.

Making and removing two files for every `true` costs more than running it: ext4 looks through
all recently removed inodes for each new one (0.7 ms a file after some thousand). So a slot
keeps its two files, and only what has been written is moved away, under the attempt's name.

A straggler may still have an empty file open, and what it writes must not turn up in another
job's output. The kernel grants a write lease only to the sole user of a file, so we ask for
one; the command opens the file itself and thereby counts as a user. Whose each slot is
stands in a file too, so that after a crash every output still finds its attempt.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from pathlib import Path

from redrived.processes.output_pages import STREAMS

FLAGS = os.O_RDWR | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW

_RECORD = 48  # bytes: a job and an execution, padded
_PROBED = 4096  # bytes: a full disk may still have room for less
_OWNER = re.compile(rb"(\d+) (\d+) *")  # a full disk or a power cut may have left anything else


class Slot:
    """Two files, empty and nobody else's while they are open."""

    def __init__(self, folder: str, number: int) -> None:
        self.number = number
        self.paths = (f"{folder}/{number}.out", f"{folder}/{number}.err")
        self._open: dict[int, int] = {}  # descriptors by stream

    def files(self) -> tuple[int, int]:
        for stream, path in enumerate(self.paths):
            if stream not in self._open:
                self._open[stream] = os.open(path, FLAGS | os.O_CREAT, 0o600)
        return self._open[0], self._open[1]

    def is_untouched(self) -> bool:
        """Whether nothing has been written, nor may yet be."""
        return not any(map(_is_in_use, self._open.values()))

    def is_in_place(self) -> bool:
        """Whether what is opened by its paths are the files that we look at."""
        try:
            return all(
                os.path.samestat(os.stat(path), os.fstat(self._open[stream]))
                for stream, path in enumerate(self.paths)
            )
        except OSError:
            return False

    def move_written(self, target: str) -> None:
        """What has been or may yet be written goes to `target`, a path without the stream."""
        for stream, path in enumerate(self.paths):
            if _is_in_use(self._open[stream]):
                move(path, f"{target}.{STREAMS[stream]}")
                os.close(self._open.pop(stream))

    def close(self) -> None:
        while self._open:
            os.close(self._open.popitem()[1])


class Slots:
    """Used by the main loop only."""

    def __init__(self, folder: str) -> None:
        self._folder = folder
        self._idle: list[Slot] = []
        self._made = 0
        self._owners = -1  # the file that says whose each slot is

    def take(self, job: int, execution: int) -> tuple[Slot, tuple[int, int]]:
        try:
            return self._take(job, execution)
        except FileNotFoundError:
            self.forget()
            return self._take(job, execution)

    def _take(self, job: int, execution: int) -> tuple[Slot, tuple[int, int]]:
        if self._owners < 0:
            os.makedirs(self._folder, mode=0o700, exist_ok=True)
            flags = FLAGS & ~os.O_APPEND | os.O_CREAT
            self._owners = os.open(f"{self._folder}/owners", flags, 0o600)
        if not self._idle:
            self._idle.append(Slot(self._folder, self._made))
            self._made += 1
        slot = self._idle[-1]
        files = slot.files()
        record = f"{job} {execution}".ljust(_RECORD)
        os.pwrite(self._owners, record.encode(), slot.number * _RECORD)
        self._idle.pop()
        return slot, files

    def give_back(self, slot: Slot) -> None:
        """The attempt is over, and has left its files untouched."""
        self._idle.append(slot)

    def give_back_written(self, slot: Slot, target: str) -> None:
        """The attempt is over; what it wrote is kept as `target`, a path without the stream."""
        try:
            slot.move_written(target)
        except OSError:
            slot.close()  # a full or read-only disk; the next daemon finds it there
        else:
            self._idle.append(slot)

    def forget(self) -> None:
        """The folder has vanished, and every file in it. Numbers in use stay theirs."""
        for slot in self._idle:
            slot.close()
        self._idle.clear()
        if self._owners >= 0:
            os.close(self._owners)
        self._owners = -1

    def probe(self) -> None:
        """Write something where commands write; OSError when that cannot be kept."""
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        path = f"{self._folder}/probe"
        file = os.open(path, FLAGS | os.O_CREAT, 0o600)
        try:
            if os.write(file, bytes(_PROBED)) < _PROBED:
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
        except OSError as error:
            raise OSError(error.errno, error.strerror, path) from error
        finally:
            os.close(file)
            os.unlink(path)

    def leftovers(self) -> Iterator[tuple[str, int, int, str]]:
        """What a daemon that died has left in its slots: path, job, execution, stream."""
        folder = Path(self._folder)
        try:
            owners = (folder / "owners").read_bytes()
        except OSError:
            owners = b""
        for path in folder.glob("[0-9]*.*"):
            number, _, stream = path.name.partition(".")
            if not path.stat().st_size:
                continue
            place = int(number) * _RECORD
            if owner := _OWNER.fullmatch(owners, place, place + _RECORD):
                yield str(path), int(owner[1]), int(owner[2]), stream
            else:  # nobody's, and it must not become the next one's
                path.unlink()


def length(file: int) -> int:
    """Seeking is the cheapest way to ask, and moves nobody: all who write append."""
    return os.lseek(file, 0, os.SEEK_END)


def move(path: str, target: str) -> None:
    """Into a folder that may not exist yet; a file that has vanished is not missed."""
    try:
        os.rename(path, target)
    except FileNotFoundError:
        os.makedirs(os.path.dirname(target), mode=0o700, exist_ok=True)
        try:
            os.rename(path, target)
        except FileNotFoundError:
            pass


def _is_in_use(file: int) -> bool:
    # The length last: only once nobody else has it open can it no longer grow.
    return not _is_ours_alone(file) or length(file) > 0


def _is_ours_alone(file: int) -> bool:
    try:
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        fcntl.fcntl(file, fcntl.F_SETLEASE, fcntl.F_UNLCK)
    except OSError:
        return False
    return True
