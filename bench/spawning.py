"""Ways to run a command: the barest one, and the daemon's with nothing around it.

Bare is a posix_spawn + pidfd loop with its output in one file; supervised is `Commands.start`,
both streams kept.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path

from redrived.processes.command import Command, Exit
from redrived.processes.commands import Commands
from redrived.processes.output import Outputs
from redrived.processes.tree import Trees

AT_ONCE = 2
Start = Callable[[int, Callable[[], None]], None]


def bare(folder: Path) -> Start:
    """What is left when nothing is supervised."""
    loop = asyncio.get_running_loop()
    output = os.open(folder / "bare.out", os.O_CREAT | os.O_APPEND | os.O_WRONLY, 0o600)
    env = {"PATH": os.environ["PATH"]}

    def start(_: int, done: Callable[[], None]) -> None:
        pid = os.posix_spawn(
            "/bin/true",
            ["true"],
            env,
            file_actions=[
                (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                (os.POSIX_SPAWN_DUP2, output, 1),
                (os.POSIX_SPAWN_DUP2, output, 2),
            ],
            setsid=True,
        )
        pidfd = os.pidfd_open(pid)

        def exited() -> None:
            loop.remove_reader(pidfd)
            os.waitpid(pid, 0)
            os.close(pidfd)
            done()

        loop.add_reader(pidfd, exited)

    return start


def supervised(folder: Path) -> Start:
    commands = Commands(Trees("bench"), Outputs(folder), folder)
    cwd = os.getcwd()

    def start(number: int, done: Callable[[], None]) -> None:
        command = Command(job=number, lease=number, execution=1, attempt=1, line=["true"], cwd=cwd)
        run = commands.start(command, lambda _: done())
        assert not isinstance(run, Exit), run

    return start


async def commands_per_second(start: Start, count: int) -> float:
    finished = asyncio.get_running_loop().create_future()
    numbers = iter(range(1, count + 1))
    running = 0

    def next_one() -> None:
        nonlocal running
        if (number := next(numbers, None)) is not None:
            running += 1
            start(number, done)
        elif not running:
            finished.set_result(None)

    def done() -> None:
        nonlocal running
        running -= 1
        next_one()

    began = time.perf_counter()
    for _ in range(AT_ONCE):
        next_one()
    await finished
    return count / (time.perf_counter() - began)
