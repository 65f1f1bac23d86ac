"""A PostgreSQL server that falls silent: open connections on which nothing comes (F32)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest
from sqlalchemy import event

from redrive.errors import TryLater
from redrived.store import deadline, events
from redrived.store.database import Trouble
from support.clock import FakeClock
from support.databases import postgresql_url
from support.open_store import PATIENCE, OpenStore
from support.proxy import Proxy


@pytest.fixture
async def proxied(
    clock: FakeClock, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[OpenStore, Proxy]]:
    monkeypatch.setattr(deadline, "WITHIN", 0.3)
    with Proxy(postgresql_url()) as proxy:
        opened = await OpenStore(proxy.url, clock).open()
        yield opened, proxy
        proxy.lets_in = True
        await opened.store.close()


async def test_a_write_into_silence_is_done_once_over_another_connection(
    proxied: tuple[OpenStore, Proxy],
) -> None:
    opened, proxy = proxied
    async with asyncio.timeout(PATIENCE):
        await opened.add()
        proxy.freeze()
        [placed] = await opened.submit(must_land=True)
    assert placed.id == 2
    assert await opened.store.read(events.head) == 2


async def test_a_question_into_silence_is_for_later_and_holds_up_no_other(
    proxied: tuple[OpenStore, Proxy],
) -> None:
    opened, proxy = proxied
    async with asyncio.timeout(PATIENCE):
        await asyncio.gather(*(opened.store.read(events.head) for _ in range(6)))
        proxy.freeze()
        answers = await asyncio.gather(
            *(opened.store.read(events.head) for _ in range(6)), return_exceptions=True
        )
        assert all(answer == 0 or isinstance(answer, TryLater) for answer in answers)
        assert await opened.store.read(events.head) == 0


async def test_a_server_that_takes_connections_and_says_nothing_is_waited_for(
    proxied: tuple[OpenStore, Proxy],
) -> None:
    opened, proxy = proxied
    database = opened.store.database
    for engine in (database.writers, database.readers):
        event.listen(engine, "do_connect", lose_patience_soon, insert=True)
    async with asyncio.timeout(PATIENCE):
        await opened.add()
        proxy.freeze()
        proxy.lets_in = False
        must = opened.submit(must_land=True)
        assert await opened.trouble() is Trouble.GONE
        with pytest.raises(TryLater, match="does not answer"):
            await opened.store.read(events.head)
        proxy.lets_in = True
        assert [place.id for place in await must] == [2]


def lose_patience_soon(_dialect: Any, _record: Any, _args: Any, options: dict[str, Any]) -> None:
    options["connect_timeout"] = 2  # seconds; psycopg knows none shorter
