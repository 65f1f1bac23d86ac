"""`redrived --config FILE`: the daemon, in the foreground."""

from __future__ import annotations

import argparse
import asyncio
import faulthandler
import gc
import logging
import os
import sys
from collections.abc import Callable

from redrive import __version__
from redrive.errors import Exit, RedriveError

GARBAGE = 20_000  # new objects before the collector looks at them; it would be 700


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="redrived", description="The redrive supervisor daemon, in the foreground."
    )
    parser.add_argument("--config", metavar="FILE", help="default: as for `redrive`")
    parser.add_argument("--version", action="version", version=f"redrived {__version__}")
    options = parser.parse_args()
    faulthandler.enable()  # the watchdog's SIGABRT leaves a trace of where everything stood
    try:
        _run(options.config)
    except RedriveError as problem:
        print(f"redrived: {problem.message}", file=sys.stderr)
        if problem.hint:
            print(f"  {problem.hint}", file=sys.stderr)
        sys.exit(problem.exit_code)
    except KeyboardInterrupt:
        sys.exit(Exit.FAILED)


def _run(config: str | None) -> None:
    from redrive.config import find_config, load
    from redrived import logs, memory

    memory.set_up()
    loaded = load(find_config(config, os.environ), look_around=True)
    daemon = loaded.config.daemon
    logs.set_up(daemon.log_level, daemon.log_format)
    for problem in loaded.problems:
        logging.getLogger(__name__).warning("%s", problem)

    from redrived.supervisor import Supervisor

    # What was imported stays: else the collector walks it again and again, 50 ms at a time.
    gc.collect()
    gc.freeze()
    # And what a batch leaves behind goes by itself: looking for cycles is not worth it so often.
    gc.set_threshold(GARBAGE)

    async def serve() -> None:
        await Supervisor(loaded).run()

    with asyncio.Runner(loop_factory=_loop_factory()) as runner:
        runner.run(serve())


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop
    except ImportError:
        return None
    return uvloop.new_event_loop


if __name__ == "__main__":
    main()
