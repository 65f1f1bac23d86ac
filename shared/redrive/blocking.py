"""The daemon, for scripts and threads: `AsyncClient` with its loop in a thread of its own."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from redrive.client import Addresses, AsyncClient, Told
from redrive.client.client import TIMEOUT
from redrive.config import Config
from redrive.errors import UsageProblem

P = ParamSpec("P")
T = TypeVar("T")


class Client:
    """Safe to use from several threads; every method waits for its answer."""

    def __init__(
        self,
        config: Addresses | Config | str | os.PathLike[str] | None = None,
        *,
        timeout: float = TIMEOUT,
        name: str = "redrive",
    ) -> None:
        self._client = AsyncClient(config, timeout=timeout, name=name)
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="redrive client", daemon=True
        )
        self._thread.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._run(self._client.close())
        self._run(self._loop.shutdown_asyncgens())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    @property
    def addresses(self) -> Addresses:
        return self._client.addresses

    @staticmethod
    def _blocking(
        method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]],
    ) -> Callable[Concatenate[Client, P], T]:
        def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self._run(method(self._client, *args, **kwargs))

        update_wrapper(call, method)
        return call

    hello = _blocking(AsyncClient.hello)
    ask = _blocking(AsyncClient.ask)
    fate = _blocking(AsyncClient.fate)
    enqueue = _blocking(AsyncClient.enqueue)
    enqueue_many = _blocking(AsyncClient.enqueue_many)
    start = _blocking(AsyncClient.start)
    start_many = _blocking(AsyncClient.start_many)
    act = _blocking(AsyncClient.act)
    wait = _blocking(AsyncClient.wait)
    status = _blocking(AsyncClient.status)
    jobs = _blocking(AsyncClient.jobs)
    job = _blocking(AsyncClient.job)
    show_job = _blocking(AsyncClient.show_job)
    runs = _blocking(AsyncClient.runs)
    run = _blocking(AsyncClient.run)
    show_run = _blocking(AsyncClient.show_run)
    why = _blocking(AsyncClient.why)
    events = _blocking(AsyncClient.events)
    log = _blocking(AsyncClient.log)

    def follow(self, after: int | None = None, *, vitals: bool = False) -> Iterator[Told]:
        """Every event after a seq, or from now on, for ever and without a hole."""
        told = self._client.follow(after, vitals=vitals)
        try:
            while True:
                yield self._run(anext(told))
        finally:
            if not self._loop.is_closed():
                self._run(told.aclose())

    def _run(self, asked: Coroutine[Any, Any, T]) -> T:
        if not self._thread.is_alive():
            asked.close()
            raise UsageProblem(
                "this client was closed, or made before the process was forked",
                hint="make a new one where it is used",
            )
        answer = asyncio.run_coroutine_threadsafe(asked, self._loop)
        try:
            return answer.result()
        finally:
            answer.cancel()  # an interrupt ends the question too
