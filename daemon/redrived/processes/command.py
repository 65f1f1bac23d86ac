"""Running a command: from the rendered words to how it ended.

Its exit is seen on a pidfd, so neither a thread nor a pipe stands between, and a grandchild
that keeps the output open delays nothing. What to make of the end is the engine's business.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable, Mapping
from contextlib import ExitStack
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from redrive.config.sections import Limits
from redrive.models import Json
from redrive.nesting import MOST, is_deep
from redrived.processes.marks import command_mark
from redrived.processes.output import Output
from redrived.processes.signals import signal_name
from redrived.processes.tree import Ended, Tree, Trees

_TAIL = 4096
_TOO_DEEP = f"no result: its last line is nested more than {MOST} levels deep"
_LARGEST_RESULT = 64 * 1024
_ENDS_OF_LINES = 3  # bytes: the newline before the last line, and what is after it
_NOBODY = Ended()


class Command(Struct, frozen=True, kw_only=True):
    """One execution, with nothing left to render."""

    job: int
    lease: int
    execution: int
    attempt: int
    line: list[str] | str  # a program and its arguments, or text for `sh -c`
    cwd: str
    run: str | None = None
    env: Mapping[str, str] = {}
    args: Mapping[str, Json] = {}  # for `sh -c` only
    limits: Limits = Limits()

    @property
    def name(self) -> str:
        return f"{self.job}.{self.lease}"

    @property
    def mark(self) -> str:
        return command_mark(self.name)


class Exit(Struct, frozen=True, kw_only=True):
    """How a command ended; the tails are read only when it failed."""

    code: int | None = None
    signal: str | None = None
    oom: bool = False  # the kernel killed something of its cgroup for memory
    stdout_tail: str = ""
    stderr_tail: str = ""
    result: dict[str, Any] | None = None  # a JSON object on its last line of stdout
    result_note: str | None = None  # why there is none, though that line looks like one
    output: int = 0  # bytes written, also those that were cut
    ended: Ended = Ended()  # whom it left behind


class CommandRun:
    """A command under way, over once its leader has been reaped and the rest is gone.

    Then `on_gone` is called first, because somebody else may go on in its place, and `on_exit`
    as soon as it is known how it ended.
    """

    def __init__(
        self,
        command: Command,
        output: Output,
        trees: Trees,
        tree: Tree,
        cleanup: ExitStack,
        on_exit: Callable[[Exit], None],
        on_gone: Callable[[], None] | None = None,
    ) -> None:
        self.command = command
        self.tree = tree
        self.is_over = False
        self.left = _NOBODY  # whom its end had to deal with, so far
        self._output = output
        self._trees = trees
        self._cleanup = cleanup
        self._on_exit = on_exit
        self._on_gone = on_gone
        self._ends_under_way = 0
        self._leftovers: asyncio.Task[Ended] | None = None
        self._status: int | None = None  # once the leader has been reaped

    def sample(self) -> int:
        """Once a second: how many bytes it has written, to be held against `limits.output`."""
        self._output.mark()
        return self._output.size()

    def cut_output(self, limit: int) -> None:
        """While it is being ended: it may go on writing until it is gone."""
        self._output.cut(limit)

    def keeps_output(self) -> bool:
        return self._output.is_kept()

    def leader_exited(self, status: int, others_are_left: bool) -> None:
        """To be called once, when it has been reaped."""
        self._status = status
        if self._ends_under_way:
            return  # it settles when everybody is gone
        if others_are_left:
            self._leftovers = self._start_ending(grace=0)
        else:
            self._settle(_NOBODY)

    async def end(self, grace: float) -> Ended:
        """End the whole tree; goes on when the caller is cancelled. Twice is fine."""
        return await asyncio.shield(self._start_ending(grace))

    def _start_ending(self, grace: float) -> asyncio.Task[Ended]:
        self._ends_under_way += 1
        return asyncio.create_task(self._end(grace))

    async def _end(self, grace: float) -> Ended:
        try:
            ended = await self._trees.end(self.tree, grace)
        finally:
            self._ends_under_way -= 1
        self.left = ended
        self._settle(ended)
        return ended

    def _settle(self, ended: Ended) -> None:
        if self._status is None or self.is_over:
            return
        self.is_over = True
        if self._on_gone is not None:
            self._on_gone()
        exited = self._describe(self._status, ended)
        try:
            self._cleanup.close()
        finally:
            self._on_exit(exited)

    def _describe(self, status: int, ended: Ended) -> Exit:
        code = os.waitstatus_to_exitcode(status)
        output = self._output
        written = output.final_size()
        facts = Exit(
            code=code if code >= 0 else None,
            signal=signal_name(-code) if code < 0 else None,
            output=written,
            ended=ended,
        )
        if code == 0:
            return replace(facts, **_result(output)._asdict()) if written else facts
        cgroup = self.tree.cgroup
        return replace(
            facts,
            oom=cgroup is not None and cgroup.out_of_memory(),
            stdout_tail=_text(output.tail(output.out, _TAIL)),
            stderr_tail=_text(output.tail(output.err, _TAIL)),
        )


class _Found(NamedTuple):
    result: dict[str, Any] | None = None
    result_note: str | None = None


def _result(output: Output) -> _Found:
    """The last line of stdout, when it is a JSON object of at most 64 KiB that is not too deep.

    Of one that is meant as a result and cannot be kept it is said why: nobody would miss it.
    """
    end = output.tail(output.out, _LARGEST_RESULT + _ENDS_OF_LINES)
    last_line = end.rstrip().rpartition(b"\n")[2]
    if len(last_line) > _LARGEST_RESULT:  # how it begins is too far away to be looked at
        most = f"no result: its last line has more than {_LARGEST_RESULT} bytes"
        return _Found(result_note=most if last_line.endswith(b"}") else None)
    if not last_line.startswith(b"{"):
        return _Found()
    try:
        result = msgspec.json.decode(last_line, type=dict[str, Any])
    except msgspec.MsgspecError as error:
        return _Found(result_note=f"no result: its last line is no JSON object: {error}")
    except RecursionError:
        return _Found(result_note=_TOO_DEEP)
    return _Found(result_note=_TOO_DEEP) if is_deep(result) else _Found(result)


def _text(tail: bytes) -> str:
    return tail.decode(errors="replace").strip()
