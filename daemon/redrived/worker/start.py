"""From a bare interpreter to a worker that is ready, in order."""

from __future__ import annotations

import gc
import os
import platform
import sys
import time
import traceback

from . import sdk
from .channel import Channel
from .descriptors import map_shared
from .hand import Hand
from .outbox import Outbox
from .output import Output
from .page import SIZE

_WHY = 300  # characters

BORN = time.time()  # nothing of the application has been imported yet


def run(socket_fd: int, mark_fd: int) -> None:
    """Set up as the daemon says, then work until there is nothing left to do."""
    channel = Channel(socket_fd)
    setup = channel.first()
    if setup is None:
        return
    sys.argv = sys.argv[:1]
    sys.path[:0] = setup["path"]
    sdk.lend(os.environ["REDRIVE_SDK"])
    outbox = Outbox(channel)
    page = memoryview(map_shared(mark_fd, SIZE)).cast("Q")
    output = Output(setup["live_output"], setup["outputs"], page, warn=outbox.warn)
    failed = _preload(setup["preload"])
    # What the preload made stays: the collector need not walk it again after every few jobs.
    gc.collect()
    gc.freeze()

    # These import `redrive`, which may be the application's own: its path must be set first.
    from .reader import Reader
    from .runner import Runner

    hand = Hand()
    runner = Runner(hand, outbox, output, page)
    reader = Reader(channel, hand, outbox, runner)
    outbox.say("ready", os.getpid(), platform.python_version(), output.said_so_far(), failed)
    reader.start()
    runner.work()
    reader.leave()


def _preload(modules: list[str]) -> str:
    """In words, what could not be imported; the whole of it is printed."""
    failed: list[str] = []
    for module in modules:
        try:
            __import__(module)
        except Exception as error:  # noqa: BLE001
            # Its tasks will fail one by one with the same reason; the others can run.
            print(f"preload of {module} failed:", file=sys.stderr)
            traceback.print_exc()
            why = traceback.format_exception_only(type(error), error)[-1].strip()
            failed.append(f"preload of {module} failed: {why[:_WHY]}")
    return "; ".join(failed)
