"""Listens to the daemon while the main thread works, and keeps time for it.

While jobs are here that the daemon does not take for begun, it looks every few
milliseconds: what has ended is told, a job that runs for longer is announced as begun, and
the jobs behind one that turns out long go back, so that others can take them.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from typing import Callable

from .channel import Channel
from .hand import ID, LEASE, Hand, Row
from .outbox import Outbox
from .runner import INTERRUPT, Runner

TICK = 0.005  # seconds
BEGUN_AFTER = 5_000  # microseconds
GIVE_BACK_AFTER = 20_000
LAST_WORDS = 5.0  # seconds for a handler to clean up when the daemon is gone


class Reader(threading.Thread):
    def __init__(self, channel: Channel, hand: Hand, outbox: Outbox, runner: Runner) -> None:
        super().__init__(name="redrive-reader", daemon=True)
        self._channel = channel
        self._hand = hand
        self._outbox = outbox
        self._main = threading.main_thread().ident or 0
        self._watching = False  # jobs are here that the daemon does not take for begun
        self._begun: Row | None = None  # the last one that the daemon knows to have begun
        self._daemon_gone = False
        self._worked = threading.Event()  # the main thread has nothing more to run
        self._verbs: dict[str, Callable[..., None]] = {
            "tasks": runner.tasks.announce,
            "hand": self._take,
            "give_back": self._give_back,
            "cancel": self._cancel,
            "answer": outbox.answered,
            "stop": self._stop,
        }

    def run(self) -> None:
        # Signals are the main thread's: one that ended up here would not wake it.
        signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
        while True:
            while (message := self._channel.message()) is not None:
                self._verbs[message[0]](*message[1:])
            self._outbox.flush()
            if self._watching:
                self._look()
            if self._channel.wait(TICK if self._watching else None) and not self._channel.fill():
                break
        self._daemon_gone = True
        self._hand.leave(interrupting=True)
        signal.pthread_kill(self._main, INTERRUPT)
        self._worked.wait(LAST_WORDS)
        _end_group()

    def leave(self) -> None:
        """Called by the main thread when it will run nothing more."""
        self._worked.set()
        if self._daemon_gone:
            self.join()

    def _take(self, rows: list[Row], begun: bool) -> None:
        if begun:
            self._begun = rows[0]
        self._watching = self._watching or not begun or len(rows) > 1
        self._hand.add(rows)

    def _give_back(self) -> None:
        self._gave_back(self._hand.give_back())

    def _stop(self) -> None:
        self._give_back()
        self._hand.leave()

    def _cancel(self, job: int, lease: int) -> None:
        # Marked first: if it is neither here nor running, it is on its way from one to the other.
        self._hand.unwanted.add((job, lease))
        row = self._hand.give_back_one(job, lease)
        if row is None:
            signal.pthread_kill(self._main, INTERRUPT)
        else:
            self._hand.unwanted.discard((job, lease))
            self._gave_back([row])

    def _look(self) -> None:
        row, began = self._hand.current, self._hand.began
        if row is None:
            self._watching = not (self._hand.idle and self._hand.empty())
            return
        ran = time.monotonic_ns() // 1000 - began
        if ran > BEGUN_AFTER and row is not self._begun:
            self._begun = row
            self._outbox.say("begun", row[ID], row[LEASE], time.time_ns() // 1000 - ran)
        if ran > GIVE_BACK_AFTER:
            self._watching = False
            if not self._hand.empty():
                self._give_back()

    def _gave_back(self, rows: list[Row]) -> None:
        self._outbox.say("gave_back", [[row[ID], row[LEASE]] for row in rows])


def _end_group() -> None:
    """The daemon is gone: nobody would look after what this process has started."""
    os.killpg(0, signal.SIGTERM)
    os._exit(1)
