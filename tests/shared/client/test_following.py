from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from redrive.client import AsyncClient, Away, Resync, Told, follower
from redrive.models import Event
from support.peer import Peer, event, opened, welcome


async def take(told: AsyncGenerator[Told], count: int) -> list[Told]:
    async with asyncio.timeout(10):
        return [await anext(told) for _ in range(count)]


def seqs(told: list[Told]) -> list[int]:
    return [each.seq for each in told if isinstance(each, Event)]


async def test_the_first_word_is_where_to_begin(peer: Peer, client: AsyncClient) -> None:
    peer.log = [event(1), event(2)]
    assert await take(client.follow(), 1) == [Resync(epoch="one", seq=2)]


async def test_events_are_told_as_they_come(peer: Peer, client: AsyncClient) -> None:
    told = client.follow()
    await take(told, 1)
    await peer.subscribed()
    await peer.tell(event(1), event(2))
    await peer.tell(event(3))
    assert await take(told, 3) == [event(1), event(2), event(3)]


async def test_what_happened_before_is_told_when_asked_for(peer: Peer, client: AsyncClient) -> None:
    peer.log = [event(seq) for seq in range(1, 2501)]
    told = await take(client.follow(after=10), 2491)
    assert told[0] == Resync(epoch="one", seq=10)
    assert seqs(told) == list(range(11, 2501))


async def test_a_gap_is_filled_from_the_store_before_what_follows_it(
    peer: Peer, client: AsyncClient
) -> None:
    told = client.follow()
    await take(told, 1)
    await peer.subscribed()
    peer.log = [event(seq) for seq in range(1, 6)]
    await peer.tell(event(1))
    await peer.tell(event(4), event(5))
    assert seqs(await take(told, 5)) == [1, 2, 3, 4, 5]


async def test_what_comes_twice_is_told_once(peer: Peer, client: AsyncClient) -> None:
    told = client.follow()
    await take(told, 1)
    await peer.subscribed()
    await peer.tell(event(1), event(2))
    await peer.tell(event(2), event(3))
    assert seqs(await take(told, 3)) == [1, 2, 3]


async def test_a_lost_tail_is_noticed_from_the_head(peer: Peer, client: AsyncClient) -> None:
    told = client.follow()
    await take(told, 1)
    await peer.subscribed()
    peer.log = [event(1), event(2)]
    await peer.tell_head()
    assert seqs(await take(told, 2)) == [1, 2]


async def test_events_that_the_store_no_longer_keeps_are_passed_over(
    peer: Peer, client: AsyncClient
) -> None:
    peer.log = [event(90)]
    told = client.follow(after=5)
    assert seqs(await take(told, 2)) == [90]


async def test_a_restarted_daemon_means_a_resync_and_nothing_is_missed(folder: Path) -> None:
    async with opened(folder) as first:
        client = AsyncClient(first.addresses, timeout=5.0)
        told = client.follow()
        await take(told, 1)
        await first.subscribed()
        await first.tell(event(1))
        await take(told, 1)
    async with opened(folder) as second:
        second.replies["Hello"] = welcome(epoch="two")
        second.log = [event(1), event(2), event(3)]
        hearing = asyncio.create_task(take(told, 3))
        await second.subscribed()
        await second.tell_head(epoch="two")
        heard = await hearing
    assert heard == [Resync(epoch="two", seq=1), event(2), event(3)]
    await told.aclose()
    await client.close()


async def test_late_words_of_the_daemon_before_change_nothing(
    peer: Peer, client: AsyncClient
) -> None:
    told = client.follow()
    await take(told, 1)
    await peer.subscribed()
    peer.replies["Hello"] = welcome(epoch="two")
    await peer.tell_head(epoch="two")
    assert await take(told, 1) == [Resync(epoch="two", seq=0)]
    await peer.tell(event(9), epoch="one")
    await peer.tell(event(1), epoch="two")
    assert await take(told, 1) == [event(1)]


async def test_late_words_of_a_daemon_that_is_long_forgotten_change_nothing(
    peer: Peer, client: AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "GONE", 1)
    told = client.follow()
    await take(told, 1)
    await peer.subscribed()
    for epoch in ("two", "three"):
        peer.replies["Hello"] = welcome(epoch=epoch)
        await peer.tell_head(epoch=epoch)
        assert await take(told, 1) == [Resync(epoch=epoch, seq=0)]
    await peer.tell(event(9), epoch="one")
    await peer.tell(event(1), epoch="three")
    assert await take(told, 1) == [event(1)]


async def test_words_of_the_daemon_before_that_are_still_unread_mute_nobody(
    peer: Peer,
) -> None:
    """It was killed while its listener asked it something, and had said more by then."""
    async with AsyncClient(peer.addresses, timeout=0.2) as client:
        told = client.follow()
        await take(told, 1)
        await peer.subscribed()
        peer.log = [event(1)]
        peer.replies["ListEvents"] = lambda _: None
        for _ in range(3):
            await peer.tell_head(epoch="one")
        [away] = await take(told, 1)
        assert isinstance(away, Away)

        del peer.replies["ListEvents"]
        peer.replies["Hello"] = welcome(epoch="two")
        assert await take(told, 2) == [Resync(epoch="two", seq=0), event(1)]
        await peer.tell(event(2), epoch="two")
        assert await take(told, 1) == [event(2)]
        await told.aclose()


async def test_another_store_is_followed_from_its_own_head(peer: Peer, client: AsyncClient) -> None:
    peer.log = [event(3)]
    assert await take(client.follow(after=1000), 1) == [Resync(epoch="one", seq=3)]


async def test_a_silent_daemon_is_reported_once_and_then_waited_for(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "SILENCE", 0.05)
    async with opened(folder) as first:
        client = AsyncClient(first.addresses, timeout=5.0)
        told = client.follow()
        await take(told, 1)
    (away,) = await take(told, 1)
    assert isinstance(away, Away)
    monkeypatch.setattr(follower, "SILENCE", 3600.0)
    async with opened(folder) as second:
        second.replies["Hello"] = welcome(epoch="two")
        assert await take(told, 1) == [Resync(epoch="two", seq=0)]
        await told.aclose()
    await client.close()
