"""Threads beside the main one, to which they leave every signal.

A signal that another thread happens to take wakes nobody: the main thread would go on waiting
for its child, and the demo would not end.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable


def start(name: str, run: Callable[[], object]) -> threading.Thread:
    def deaf() -> None:
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        run()

    thread = threading.Thread(target=deaf, name=name, daemon=True)
    thread.start()
    return thread
