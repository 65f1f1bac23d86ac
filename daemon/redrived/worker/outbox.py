"""What the worker still has to say to the daemon, and the answers it waits for.

A handler never writes to the socket itself: it may be interrupted anywhere, and half a
frame would garble all that follows. It leaves its words here and wakes the reader.
"""

from __future__ import annotations

import json
import os
import threading
from collections import deque
from itertools import count
from typing import Any

from .channel import Channel

encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode

LARGEST_REPORT = 1 << 20  # characters; a frame with many large results is sent in parts


class NotAnswered(RuntimeError):
    """The daemon could not answer a question of a running job."""


class Outbox:
    def __init__(self, channel: Channel) -> None:
        self._channel = channel
        self._pid = os.getpid()
        self._words: deque[str] = deque()
        self._reports: deque[str] = deque()
        self._flushing = threading.Lock()
        self._questions = count(1)
        self._waiting: dict[int, _Answer] = {}

    def say(self, kind: str, *values: Any) -> None:
        """Leave a message; the reader sends it at once."""
        self._words.append(encode([kind, *values]))
        self._channel.wake()

    def warn(self, text: str) -> None:
        self.say("warn", text)

    def ask(self, job: int, lease: int, question: str, value: Any) -> Any:
        """Ask the daemon and wait for its answer."""
        if os.getpid() != self._pid:
            raise NotAnswered(f"{question}: a process that the handler forked cannot ask")
        number = next(self._questions)
        answer = self._waiting[number] = _Answer()
        try:
            self.say("ask", number, job, lease, question, value)
            return answer.wait()
        finally:
            del self._waiting[number]

    def answered(self, number: int, value: Any, problem: str | None) -> None:
        answer = self._waiting.get(number)
        if answer is not None:  # else the handler was interrupted meanwhile
            answer.give(value, problem)

    def report(self, row: str) -> None:
        """An attempt has ended; told with the next flush."""
        self._reports.append(row)

    def flush(self) -> None:
        """Send everything; what a job said goes before its end."""
        with self._flushing:
            # Taken first, sent last: the words of every job whose end is here are here, too.
            reports = _take_all(self._reports)
            messages = _take_all(self._words)
            part: list[str] = []
            size = 0
            for row in reports:
                part.append(row)
                size += len(row)
                if size > LARGEST_REPORT:
                    messages.append(_report(part))
                    part, size = [], 0
            if part:
                messages.append(_report(part))
            if messages:
                self._channel.send(messages)


class _Answer:
    def __init__(self) -> None:
        self._value: Any = None
        self._problem: str | None = None
        # A bare lock: waiting for one in the main thread can be interrupted by a signal.
        self._here = threading.Lock()
        self._here.acquire()

    def give(self, value: Any, problem: str | None) -> None:
        self._value, self._problem = value, problem
        self._here.release()

    def wait(self) -> Any:
        self._here.acquire()
        if self._problem is not None:
            raise NotAnswered(self._problem)
        return self._value


def _report(rows: list[str]) -> str:
    return '["report",[' + ",".join(rows) + "]]"


def _take_all(texts: deque[str]) -> list[str]:
    # What another thread adds meanwhile is left for the next time.
    return [texts.popleft() for _ in range(len(texts))]
