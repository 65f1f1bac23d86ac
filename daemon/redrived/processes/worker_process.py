"""The child process of a pool: started, spoken to over one socket, seen to exit at once.

What it says is handed on word by word; which jobs it holds is `pool_worker`'s business. The
job that began last stands in a page of memory that both share, so that it is known even when
the worker died without a word; see `worker.page`.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import mmap
import os
import socket
import subprocess
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from redrived.processes import proc, wire
from redrived.processes.cgroup import Cgroup
from redrived.processes.environment import inherited
from redrived.processes.live_output import LiveOutput
from redrived.processes.marks import worker_mark
from redrived.processes.tree import OWNER, Ended, Trees
from redrived.worker import page

log = logging.getLogger(__name__)

_MAIN = Path(__file__).parent.parent / "worker" / "main.py"
_CHUNK = 1 << 18


class Launch(Struct, frozen=True, kw_only=True):
    """How the workers of a pool are started."""

    pool: str
    python: str
    folder: str
    path: list[str]
    preload: list[str]
    outputs: str
    sdk: str  # the folder of our `redrive`

    def setup(self, live_output: str) -> dict[str, object]:
        """What the worker is told first."""
        return {
            "path": self.path,
            "preload": self.preload,
            "outputs": self.outputs,
            "live_output": live_output,
        }


class BegunLast(NamedTuple):
    job: int
    lease: int
    execution: int
    at: int
    is_importing: int  # 1 while the code of its task is being loaded


class WorkerProcess:
    """Used by the main loop only."""

    def __init__(
        self,
        name: str,
        launch: Launch,
        trees: Trees,
        on_word: Callable[[wire.Word], None],
        on_exit: Callable[[int], None],
    ) -> None:
        """Start it; OSError when that cannot be done."""
        self.name = name
        self.output = LiveOutput(launch.outputs, name)
        self.garbled = ""  # what it sent that made no sense; we ended it for that
        self.ran_out_of_memory = False  # the kernel killed somebody of its cgroup for that
        self.left = Ended()  # whom its end had to deal with
        self._trees = trees
        self._on_word = on_word
        self._on_exit = on_exit
        self._loop = asyncio.get_running_loop()
        self._words = wire.Words()
        self._unsent = bytearray()
        self._ends_under_way = 0
        self._code: int | None = None  # of its exit, once it has been reaped
        self._clean_up: asyncio.Task[Ended] | None = None
        self._start(launch)
        self.send(wire.frame("setup", launch.setup(self.output.path)))

    @property
    def pid(self) -> int:
        return self._process.pid

    def pids(self) -> list[int]:
        return self._tree.pids()

    def send(self, frame: bytes) -> None:
        """Never waits: what the socket does not take now follows when it can."""
        sent = 0
        if not self._unsent:
            try:
                sent = self._socket.send(frame)
            except BlockingIOError:
                pass
            except OSError:
                return  # it is gone; its exit tells the rest
            if sent < len(frame):
                self._loop.add_writer(self._socket, self._send_rest)
        self._unsent += frame[sent:]

    async def end(self, grace: float) -> Ended:
        """SIGTERM, `grace` seconds, then SIGKILL for everything that it started."""
        self._ends_under_way += 1
        try:
            self.left = await self._trees.end(self._tree, grace)
            return self.left
        finally:
            self._ends_under_way -= 1
            self._tell_exit()

    @property
    def is_being_ended(self) -> bool:
        return self._ends_under_way > 0

    def is_alone(self) -> bool:
        """Whether nothing is left of what its handlers have started."""
        return self._trees.is_alone(self._tree)

    def begun_last(self) -> BegunLast | None:
        """None when it cannot be read: something else wrote there, or it is being written."""
        job, lease, execution, at, check, is_importing = self._page[:6]
        if check != page.check_of(job, lease, execution, at):
            return None
        return BegunLast(job, lease, execution, at, is_importing)

    def say_why(self, lease: int, ending: str) -> None:
        """Leave on the page, for the exception in the handler, why its attempt is ended."""
        if not self._page.readonly:  # it is when the process is gone
            self._page[page.WHY] = page.why_of(ending)
            self._page[page.ENDED] = lease

    def is_stopped(self) -> bool:
        """By a signal; it does nothing at all then."""
        facts = proc.stat(self.pid)
        return facts is not None and facts.state == "T"

    def memory(self) -> int:
        """Bytes of it that are in RAM."""
        facts = proc.stat(self.pid)
        return facts.rss * mmap.PAGESIZE if facts else 0

    def keeps_output(self) -> bool:
        """Whether the file that we look at is the one it prints to."""
        return self.output.is_at(self._page[page.LIVE])

    def _start(self, launch: Launch) -> None:
        marks = {OWNER: self._trees.owner, "REDRIVE_WORKER": self.name}
        lent = {"REDRIVE_SDK": launch.sdk}  # for processes that multiprocessing starts, too
        with ExitStack() as passed_on:
            self._socket, theirs = socket.socketpair()
            passed_on.callback(theirs.close)
            started = passed_on.enter_context(ExitStack())
            started.callback(self._socket.close)
            shared = _make_page()
            passed_on.callback(os.close, shared)
            self._page = memoryview(mmap.mmap(shared, page.SIZE)).cast("Q")
            self._page[page.CHECK] = page.check_of(0, 0, 0, 0)
            started.callback(self.output.remove)
            output = self.output.open()
            passed_on.callback(os.close, output)
            self._process = subprocess.Popen(
                [launch.python, str(_MAIN), launch.pool, str(theirs.fileno()), str(shared)],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                pass_fds=(theirs.fileno(), shared),
                cwd=launch.folder,
                env=inherited() | marks | lent,
                start_new_session=True,
            )
            started.callback(_abandon, self._process)
            self._pidfd = os.pidfd_open(self.pid)
            started.pop_all()
        mark, live = worker_mark(self.name), self.output.path
        self._tree = self._trees.hold(self.pid, mark, self._cgroup(), lambda: proc.ids_of(live))
        self._socket.setblocking(False)
        self._loop.add_reader(self._socket, self._receive)
        self._loop.add_reader(self._pidfd, self._exited)

    def _cgroup(self) -> Cgroup | None:
        """Entered before the worker has been told where the application is, so with all of it."""
        cgroup = self._trees.cgroup(f"worker.{self.name}")
        if cgroup is not None:
            cgroup.add(self.pid)
        return cgroup

    def _receive(self) -> bool:
        """Hear what has come; whether there may be more."""
        try:
            data = self._socket.recv(_CHUNK)
        except BlockingIOError:
            return False
        except OSError:
            data = b""
        try:
            for word in self._words.feed(data):
                self._hear(word)
        except wire.Garbled as problem:
            self.garbled = str(problem)
            log.error("worker %s is ended: what it sent made no sense: %s", self.name, problem)
            self._process.kill()
            data = b""
        if not data:
            self._loop.remove_reader(self._socket)
        return bool(data)

    def _hear(self, word: wire.Word) -> None:
        try:
            self._on_word(word)
        except Exception:  # the words behind it, and the exit, are to be heard all the same
            log.exception("worker %s: a word of it could not be dealt with", self.name)

    def _send_rest(self) -> None:
        try:
            del self._unsent[: self._socket.send(self._unsent)]
        except BlockingIOError:
            return
        except OSError:
            self._unsent.clear()
        if not self._unsent:
            self._loop.remove_writer(self._socket)

    def _exited(self) -> None:
        self._loop.remove_reader(self._pidfd)
        os.close(self._pidfd)
        while not self.garbled and self._receive():
            pass  # what it said before it died
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        self._code = self._process.wait()
        if not self._ends_under_way:
            self.left = replace(self.left, unkillable=())  # it has gone after all
        # What it said last stays as it is; the page that both shared costs us a descriptor.
        self._page = memoryview(self._page.tobytes()).cast("Q")
        others_are_left = self._trees.release(self._tree)
        if others_are_left and not self._ends_under_way:
            self._clean_up = self._loop.create_task(self.end(0))
        else:
            self._tell_exit()

    def _tell_exit(self) -> None:
        """Once it and all that it started are gone."""
        if self._code is not None and not self._ends_under_way:
            code, self._code = self._code, None
            if self._tree.cgroup is not None:
                self.ran_out_of_memory = self._tree.cgroup.out_of_memory()
                self._tree.cgroup.remove()
            self._on_exit(code)


def _make_page() -> int:
    """Of a size that the worker cannot change: we would die of reading what is not there."""
    made = os.memfd_create("redrive-begun", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(made, page.SIZE)
    fcntl.fcntl(made, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_GROW)
    return made


def _abandon(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
