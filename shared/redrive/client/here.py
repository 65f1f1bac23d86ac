"""Asking in the thread that waits for the answer, without a turn of the loop.

A task, a timer and three turns of a loop cost as much as the question itself. They are spared
where one question is asked and nothing else goes on; all else is done by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from selectors import BaseSelector
from typing import Any, TypeVar

from redrive.client.channel import Channel, NotConnected
from redrive.client.client import AsyncClient
from redrive.protocol.envelope import Request

T = TypeVar("T")


class Here(AsyncClient):
    """What asks once can be asked of this one; the loop runs where there is no connection yet."""

    def __init__(
        self,
        client: AsyncClient,
        selector: BaseSelector,
        run: Callable[[Coroutine[Any, Any, Any]], Any],
    ) -> None:
        super().__init__(client.addresses, timeout=client.timeout)
        self._queries = client._queries
        self._changes = client._changes
        self._selector = selector
        self._run = run

    async def _over(self, channel: Channel, request: Request, id: str, seconds: float) -> Any:
        try:
            return channel.ask_here(
                request, id=id, timeout=seconds, selector=self._selector, run=self._run
            )
        except NotConnected:
            return self._run(channel.ask(request, id=id, timeout=seconds))


def through(asked: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        asked.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    asked.close()
    raise RuntimeError("this takes more than one question, so it takes a loop")
