"""What attempts write: two files each, byte for byte, kept and removed with their job.

Commands write straight into the files, so a dying daemon breaks nobody's pipe and a flood
costs no memory. Nothing here waits for output or looks into it.
"""

from __future__ import annotations

import errno
import logging
import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from redrived.processes.output_pages import Marks, Page, read_page
from redrived.processes.output_slots import FLAGS, Slot, Slots, length, move
from redrived.processes.proc import FileId

log = logging.getLogger(__name__)

_FILE_NAME = re.compile(r"(?P<job>\d+)\.(?P<execution>\d+)\.(?:out|err|idx)")


class Output:
    """Both streams of a running attempt."""

    def __init__(self, job: int, execution: int) -> None:
        self.job = job
        self.execution = execution
        self.slot: Slot | None = None
        self.files = (-1, -1)
        self.marks = Marks()
        self.is_untouched = False  # nobody has written, or can write any more

    def use(self, files: tuple[int, int], slot: Slot | None = None) -> None:
        self.files, self.slot = files, slot

    @property
    def paths(self) -> tuple[str, str]:
        """What the command opens as its stdout and stderr, to append to."""
        return self.slot.paths if self.slot else (os.devnull, os.devnull)

    @property
    def out(self) -> int:
        return self.files[0]

    @property
    def err(self) -> int:
        return self.files[1]

    def sizes(self) -> tuple[int, int]:
        out, err = self.files
        return length(out), length(err)

    def size(self) -> int:
        out, err = self.sizes()
        return out + err

    def final_size(self) -> int:
        """The same, once its command is gone; most write nothing, which is the cheapest to see."""
        self.is_untouched = self.slot is not None and self.slot.is_untouched()
        return 0 if self.is_untouched else self.size()

    def ids(self) -> list[FileId]:
        """The files by which its processes are known, as nobody else has them open to write to."""
        if self.slot is None:
            return []
        return [(facts.st_dev, facts.st_ino) for facts in map(os.fstat, self.files)]

    def is_kept(self) -> bool:
        """Whether what is written is seen here, and will be there when the attempt is over."""
        return self.slot is not None and self.slot.is_in_place()

    def mark(self) -> tuple[int, int]:
        """Once a second: what is there now, so much of each, came before all that follows."""
        sizes = self.sizes()
        self.marks.add(*sizes)
        return sizes

    def cut(self, limit: int) -> None:
        """Keep no more than that of each stream; who still writes appends to what is left."""
        for file, size in zip(self.files, self.sizes(), strict=True):
            if size > limit:
                _cut(file, limit)

    def tail(self, file: int, size: int) -> bytes:
        """Nothing, where a broken disk has it: that costs the words, never the end."""
        try:
            end = os.fstat(file).st_size
            return os.pread(file, size, max(0, end - size))
        except OSError:
            return b""


class Outputs:
    """The outputs of all attempts: `outputs/JOB÷1000/JOB.EXECUTION.out` and `.err`."""

    def __init__(self, state_dir: Path) -> None:
        self.trouble = ""  # why what is printed is not kept just now, as on a full disk
        self.folder = str(state_dir / "outputs")
        self._slots = Slots(f"{self.folder}/slots")
        self._null = os.open(os.devnull, FLAGS)
        # Written by the main loop only.
        self._live: dict[tuple[int, int], Output] = {}
        self._recover()

    def open(self, job: int, execution: int) -> Output:
        """Ready to be written to. A lost or full disk costs the output, never the attempt."""
        output = Output(job, execution)
        self._equip(output)
        self._live[job, execution] = output
        return output

    def mend(self, output: Output) -> bool:
        """A command could not be started: was it for its output, and are there other files now?"""
        if output.slot is None or _can_be_opened(output.paths):
            return False
        self._slots.forget()
        output.slot.close()
        self._equip(output)
        return True

    def look(self) -> str:
        """Why what is printed would not be kept now, found by writing something; "" if it is."""
        try:
            self._slots.probe()
        except OSError as error:
            self._note_trouble(error)
        else:
            self.trouble = ""
        return self.trouble

    @property
    def complaint(self) -> str:
        """The trouble as a sentence, if there is one."""
        return f"what jobs print is not kept just now: {self.trouble}" if self.trouble else ""

    def finish(self, output: Output, limit: int) -> None:
        """The attempt is gone; what it wrote is kept up to the limit."""
        del self._live[output.job, output.execution]
        if output.slot and output.is_untouched:
            self._slots.give_back(output.slot)
            return
        sizes = output.sizes()
        output.cut(limit)
        path = self._path(output.job, output.execution)
        if output.slot:
            self._slots.give_back_written(output.slot, path)
        if all(sizes):
            output.marks.add(*sizes)
            _save_marks(output.marks, f"{path}.idx")

    def cut(self, job: int, execution: int, limit: int) -> bool:
        """Keep no more of what a worker has put there than the limit; whether there was more."""
        path = f"{self._path(job, execution)}.out"
        try:
            if os.path.getsize(path) <= limit:
                return False
            os.truncate(path, limit)
        except OSError:
            return False  # gone with its folder
        return True

    def read_live(self, path: str, offset: int, limit: int) -> Page:
        """The same as `read`, of what a worker prints just now."""
        file = _open_to_read(path)
        try:
            return read_page((file, None), Marks(), offset, limit, is_live=True)
        finally:
            _close([file])

    def read(self, job: int, execution: int, offset: int = 0, limit: int = 65536) -> Page:
        """A piece of both streams in the order they were written."""
        if live := self._live.get((job, execution)):
            sizes = live.mark()  # what is shown now keeps its place, and no more is shown
            return read_page(live.files, live.marks, offset, limit, is_live=True, sizes=sizes)
        path = self._path(job, execution)
        files = (_open_to_read(f"{path}.out"), _open_to_read(f"{path}.err"))
        try:
            return read_page(files, Marks.load(f"{path}.idx"), offset, limit, is_live=False)
        finally:
            _close(files)

    def tail(self, job: int, execution: int, size: int) -> Page:
        """The last bytes of both streams."""
        end = self.read(job, execution, limit=0).size
        return self.read(job, execution, offset=max(0, end - size), limit=size)

    def remove(self, jobs: Iterable[int]) -> None:
        """The jobs are gone, and so is what they wrote. Slow: not for the main loop."""
        wanted = set(jobs)
        for thousand in {job // 1000 for job in wanted}:
            for path, job, _ in _files_in(f"{self.folder}/{thousand}"):
                if job in wanted:
                    _remove(path)

    def prune(self, before: float) -> int:
        """Remove what was last written before that time (Unix). Slow: not for the main loop."""
        removed = 0
        for folder in _folders_in(self.folder):
            for path, job, execution in _files_in(folder):
                if (job, execution) not in self._live and _last_written(path) < before:
                    _remove(path)
                    removed += 1
            try:
                os.rmdir(folder)
            except OSError:
                pass  # something is left in it
        return removed

    def _recover(self) -> None:
        """Give the attempts of a daemon that died what they wrote."""
        for path, job, execution, stream in self._slots.leftovers():
            try:
                move(path, f"{self._path(job, execution)}.{stream}")
            except OSError:
                pass  # a full or read-only disk; it stays where it is for the next time

    def _equip(self, output: Output) -> None:
        try:
            slot, files = self._slots.take(output.job, output.execution)
        except OSError as error:
            if error.errno in (errno.EMFILE, errno.ENFILE):
                raise
            self._note_trouble(error)
            output.use((self._null, self._null))
        else:
            output.use(files, slot)
            if self.trouble:  # a slot that was ready is no proof: a full disk has it, too
                self.look()

    def _note_trouble(self, error: OSError) -> None:
        """Said once, for there may be many whose output it is."""
        if error.errno in (errno.EMFILE, errno.ENFILE):
            return  # nothing is wrong with the folder
        reason = f"{error.strerror}: {error.filename}"
        if not self.trouble:
            log.warning("what is printed is not kept until it can be again: %s", reason)
        self.trouble = reason

    def _path(self, job: int, execution: int) -> str:
        return f"{self.folder}/{job // 1000}/{job}.{execution}"


def _cut(file: int, limit: int) -> None:
    try:
        os.ftruncate(file, limit)
    except OSError:
        pass  # a broken or read-only disk, which takes no more of it either


def _can_be_opened(paths: Iterable[str]) -> bool:
    try:
        for path in paths:
            os.close(os.open(path, FLAGS))
    except OSError:
        return False
    return True


def _save_marks(marks: Marks, path: str) -> None:
    try:
        marks.save(path, FLAGS)
    except OSError:
        pass  # both streams are kept, only their order is lost


def _open_to_read(path: str) -> int | None:
    try:
        return os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:
        return None


def _close(files: Iterable[int | None]) -> None:
    for file in files:
        if file is not None:
            os.close(file)


def _folders_in(folder: str) -> list[str]:
    try:
        return [entry.path for entry in os.scandir(folder) if entry.name.isdecimal()]
    except OSError:
        return []


def _files_in(folder: str) -> Iterator[tuple[str, int, int]]:
    """Path, job and execution of each."""
    try:
        entries = list(os.scandir(folder))
    except OSError:
        return
    for entry in entries:
        if match := _FILE_NAME.fullmatch(entry.name):
            yield entry.path, int(match["job"]), int(match["execution"])


def _last_written(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except OSError:
        return float("inf")


def _remove(path: str) -> None:
    try:
        os.unlink(path)
    except OSError:
        pass
