"""Asking in the thread that waits for the answer, without a turn of the loop.

A task, a timer and three turns of a loop cost as much as the question itself. They are spared
where one question is asked and nothing else goes on; all else is done by the loop.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from selectors import BaseSelector
from typing import Any, TypeVar

from redrive.client.channel import NotConnected
from redrive.client.client import AsyncClient
from redrive.client.refusals import AnswerLost
from redrive.protocol.envelope import Answer, Request

T = TypeVar("T")


class Here(AsyncClient):
    """What asks once can be asked of this one; it raises `NotConnected` when it takes the loop."""

    def __init__(
        self,
        client: AsyncClient,
        selector: BaseSelector,
        run: Callable[[Coroutine[Any, Any, Answer]], Answer],
    ) -> None:
        super().__init__(client.addresses, timeout=client.timeout)
        self._queries = client._queries
        self._changes = client._changes
        self._selector = selector
        self._run = run

    async def _put(self, request: Request, id: str, seconds: float) -> Any:
        channel = self._changes if self.is_change(request) else self._queries
        try:
            return channel.ask_here(
                request, id=id, timeout=seconds, selector=self._selector, run=self._run
            )
        except AnswerLost as lost:
            if channel is self._changes:
                raise
            if lost.is_silent:
                raise lost.of_a_question(self.addresses.hint) from None
            raise NotConnected from None  # the loop greets, and asks once more


def through(asked: Coroutine[Any, Any, T]) -> T:
    """The result of a coroutine that never waits."""
    try:
        asked.send(None)
    except StopIteration as end:
        result: T = end.value
        return result
    asked.close()
    raise RuntimeError("this takes more than one question, so it takes a loop")
