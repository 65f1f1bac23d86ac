"""The daemon, for scripts and threads: `AsyncClient` and a loop for it.

Whoever waits for an answer reads it, or lets the loop run for it. Only when a second thread asks
meanwhile does the loop get a thread of its own, and keeps it: each way through one costs as much
as a small request.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import selectors
import threading
from collections.abc import Callable, Coroutine, Iterator
from functools import update_wrapper
from typing import Any, Concatenate, ParamSpec, Self, TypeVar

from redrive.client import Addresses, AsyncClient, Told
from redrive.client.client import TIMEOUT
from redrive.client.here import Here, through
from redrive.config import Config
from redrive.errors import UsageProblem

ENDING = 1.0  # seconds for a question that was interrupted, should its end have been, too

P = ParamSpec("P")
T = TypeVar("T")

Asking = Callable[[AsyncClient], Coroutine[Any, Any, T]]


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
        # Not epoll: a child made by fork shares that, and deafens us when it lets go of its copy.
        selector = selectors.PollSelector()
        self._loop = asyncio.SelectorEventLoop(selector)
        self._here = Here(self._client, selector, self._complete)
        self._process = os.getpid()
        self._turn = threading.Condition()
        self._runner: int | None = None  # the thread of the caller in which the loop runs
        self._is_shared = False  # somebody else has asked meanwhile
        self._is_closed = False
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Whoever still waits for an answer is told so. In a forked child there is nothing to do."""
        if self._process != os.getpid():
            return
        self._refuse_in_between()
        try:
            with self._turn:
                if self._is_closed:
                    return
                self._is_closed = True
                answer = self._begin(self._end)
            _wait_for(answer) if answer else self._complete(self._end(self._client))
        finally:
            self._leave()
        with self._turn:
            self._turn.wait_for(lambda: self._runner is None)
        if self._thread is not None:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
        self._loop.close()

    @property
    def addresses(self) -> Addresses:
        return self._client.addresses

    @staticmethod
    def _blocking(
        method: Callable[Concatenate[AsyncClient, P], Coroutine[Any, Any, T]], *, once: bool = True
    ) -> Callable[Concatenate[Client, P], T]:
        """A method that waits; `once`: it is one question and nothing else."""

        def call(self: Client, /, *args: P.args, **kwargs: P.kwargs) -> T:
            return self._run(lambda client: method(client, *args, **kwargs), once=once)

        update_wrapper(call, method)
        return call

    hello = _blocking(AsyncClient.hello, once=False)
    ask = _blocking(AsyncClient.ask)
    fate = _blocking(AsyncClient.fate)
    enqueue = _blocking(AsyncClient.enqueue)
    enqueue_many = _blocking(AsyncClient.enqueue_many, once=False)
    order = _blocking(AsyncClient.order)
    start = _blocking(AsyncClient.start)
    start_many = _blocking(AsyncClient.start_many, once=False)
    act = _blocking(AsyncClient.act)
    wait = _blocking(AsyncClient.wait, once=False)
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
                yield self._run(lambda _: anext(told))
        finally:
            # Garbage is collected in any thread; the loop ends by itself what nobody holds.
            if not (self._is_closed or self._is_in_between()):
                self._run(lambda _: told.aclose())

    def _run(self, ask: Asking[T], *, once: bool = False) -> T:
        if self._process != os.getpid():
            raise UsageProblem(
                "this client was made before the process was forked",
                hint="make a new one where it is used",
            )
        self._refuse_in_between()
        try:
            with self._turn:
                if self._is_closed:
                    raise _closed()
                answer = self._begin(ask)
            return _wait_for(answer) if answer else self._run_here(ask, once=once)
        except (asyncio.CancelledError, concurrent.futures.CancelledError):
            if self._is_closed:
                raise _closed() from None
            raise
        finally:
            self._leave()

    def _leave(self) -> None:
        """Whatever has ended the question, an interrupt at any point included."""
        if self._runner == threading.get_ident():
            self._runner = None
            with self._turn:
                self._start_thread()
                self._turn.notify_all()

    def _is_in_between(self) -> bool:
        """Whether it is this very thread that runs the loop."""
        return threading.get_ident() in (self._runner, self._thread and self._thread.ident)

    def _refuse_in_between(self) -> None:
        if self._is_in_between():
            raise UsageProblem(
                "this client waits for an answer already, in this very thread",
                hint="in a signal handler set a flag, or make a client there",
            )

    def _begin(self, ask: Asking[T]) -> concurrent.futures.Future[T] | None:
        """Hand it to the loop where that runs; None when it is to run here."""
        if self._runner is None and self._thread is None and not _is_in_a_loop():
            self._runner = threading.get_ident()
            return None
        answer = asyncio.run_coroutine_threadsafe(ask(self._client), self._loop)
        self._is_shared = True
        self._start_thread()
        return answer

    def _run_here(self, ask: Asking[T], *, once: bool = False) -> T:
        return through(ask(self._here)) if once else self._complete(ask(self._client))

    def _complete(self, asked: Coroutine[Any, Any, T]) -> T:
        """Let the loop run until this is through."""
        task = self._loop.create_task(asked)
        try:
            return self._loop.run_until_complete(task)
        finally:
            if not task.done():  # an interrupt ends the question too
                task.cancel()
                self._loop.run_until_complete(asyncio.wait([task], timeout=ENDING))

    async def _end(self, _: AsyncClient) -> None:
        await self._client.close()
        asked = asyncio.all_tasks() - {asyncio.current_task()}
        for task in asked:
            task.cancel()
        if asked:
            await asyncio.wait(asked)
        await self._loop.shutdown_asyncgens()

    def _start_thread(self) -> None:
        if self._is_shared and self._runner is None and self._thread is None:
            self._thread = threading.Thread(
                target=self._loop.run_forever, name="redrive client", daemon=True
            )
            self._thread.start()


def _closed() -> UsageProblem:
    return UsageProblem("this client was closed", hint="make a new one where it is used")


def _wait_for(answer: concurrent.futures.Future[T]) -> T:
    try:
        return answer.result()
    finally:
        answer.cancel()  # an interrupt ends the question too


def _is_in_a_loop() -> bool:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True
