"""A console in this terminal, which is left as it was found however the console ends."""

from __future__ import annotations

import asyncio
import signal

from redrive_tui.app import Console


async def show(console: Console, *, mouse: bool = True) -> None:
    """Until the operator leaves, the service manager asks, or the terminal goes away.

    A fault of the console is raised here, where the terminal is clean again.
    """
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGHUP):
        loop.add_signal_handler(number, console.exit)
    await console.run_async(mouse=mouse)
    if console.fault is not None:
        raise console.fault
