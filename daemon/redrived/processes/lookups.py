"""Asks the resolver for the addresses of names, and lets one that hangs hold up nobody else.

`getaddrinfo` cannot be interrupted: a name server that is silent holds its thread for as long as
the system is patient, however soon the call is over that asked. A few threads in a pool would all
stand there, a call to any other name would wait behind them, and the program could not end before
the last of them. So each look-up has a thread that nobody waits for at the end; a name is asked
for once, by whoever wants it at that moment; and of the names that are asked for at once, which
have a bound, one that takes too long makes room for another.

What is left: while `AT_ONCE` names hang, the next one waits up to `PATIENCE` for its turn; and a
name whose look-up never ends keeps its one thread, and cannot be called.
"""

from __future__ import annotations

import asyncio
import socket
import threading
from concurrent.futures import Future

AT_ONCE = 32  # names
PATIENCE = 30.0  # seconds; by then the system's own resolver has tried its servers

Found = list[str]


class Lookups:
    """Used by one loop only."""

    def __init__(self, at_once: int = AT_ONCE, patience: float = PATIENCE) -> None:
        self._turns = asyncio.Semaphore(at_once)
        self._patience = patience
        self._under_way: dict[str, asyncio.Task[Found]] = {}
        # Added here, removed by the thread that has its answer.
        self._threads: dict[str, Future[Found]] = {}

    async def addresses(self, host: str) -> Found:
        """All of a name, in the order to try them. Raises `socket.gaierror`."""
        looking = self._under_way.get(host)
        if looking is None:
            looking = self._under_way[host] = asyncio.create_task(self._look_up(host))
            looking.add_done_callback(lambda _: self._under_way.pop(host))
        return await asyncio.shield(looking)  # others may want the answer still

    async def _look_up(self, host: str) -> Found:
        async with self._turns:
            asking = self._threads.get(host) or self._ask(host)
            try:
                async with asyncio.timeout(self._patience):
                    return await asyncio.wrap_future(asking)
            except TimeoutError:
                raise socket.gaierror(
                    socket.EAI_AGAIN, f"no name server told the address of {host}"
                ) from None

    def _ask(self, host: str) -> Future[Found]:
        answer: Future[Found] = Future()
        answer.set_running_or_notify_cancel()  # who stops waiting does not stop the thread
        thread = threading.Thread(target=_ask, args=(host, answer), name="resolve", daemon=True)
        thread.start()
        self._threads[host] = answer
        answer.add_done_callback(lambda _: self._threads.pop(host, None))
        return answer


def _ask(host: str, answer: Future[Found]) -> None:
    try:
        found = socket.getaddrinfo(host, None, type=socket.SOCK_STREAM)
    except Exception as error:  # noqa: BLE001 - whoever asked deals with it
        answer.set_exception(error)
    else:
        answer.set_result(list(dict.fromkeys(str(entry[4][0]) for entry in found)))
