"""`redrived` as a program, except that its loop hangs for good when it is sent SIGUSR1."""

from __future__ import annotations

import asyncio
import signal
import time

from redrived import supervisor
from redrived.__main__ import main


def hang() -> None:
    time.sleep(3600)


class Hanging(supervisor.Supervisor):
    def _listen_for_signals(self) -> None:
        super()._listen_for_signals()
        asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, hang)


if __name__ == "__main__":
    supervisor.Supervisor = Hanging  # type: ignore[misc]
    main()
