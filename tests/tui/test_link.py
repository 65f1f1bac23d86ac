"""The console's link to a daemon that comes and goes."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive.client import follower
from redrive.clock import SystemClock
from redrive.models import Event
from redrive_tui import link as linking
from redrive_tui.link import Link
from redrive_tui.mirror import Mirror
from support import incident
from support.daemon import soon
from support.peer import Peer, opened, welcome


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(linking, "STATUS_EVERY", 0.02)


@pytest.fixture
def folder() -> Iterator[Path]:
    """Short enough for the path of a socket."""
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        yield Path(name)


@asynccontextmanager
async def following(folder: Path) -> AsyncIterator[Mirror]:
    link, mirror = Link(Peer(folder).addresses), Mirror(SystemClock())
    task = asyncio.create_task(link.follow(mirror))
    try:
        yield mirror
    finally:
        task.cancel()
        await asyncio.wait([task])
        await link.close()


@asynccontextmanager
async def speaking(folder: Path, epoch: str) -> AsyncIterator[Peer]:
    """A daemon that knows how things stand."""
    async with opened(folder) as peer:
        peer.replies["Hello"] = welcome(epoch=epoch)
        peer.replies["Status"] = incident.status(epoch=epoch)
        yield peer


async def test_every_try_since_the_loss_is_counted_and_the_next_word_ends_the_count(
    folder: Path,
) -> None:
    async with following(folder) as mirror:
        async with speaking(folder, "one"):
            await soon(lambda: mirror.link.word == "live", "the link is live")
        await soon(lambda: mirror.link.word == "lost", "the loss is noticed")
        gone = "no daemon at "  # at first it may have gone away in mid-question
        await soon(lambda: mirror.link.detail.startswith(gone), "nobody is there")
        tries = mirror.link.retries
        await soon(lambda: mirror.link.retries >= tries + 3, "it is tried again")
        async with speaking(folder, "two"):
            await soon(lambda: mirror.link.word == "live", "it is found again")
            assert mirror.link.retries == 0
            assert mirror.welcome is not None
            assert mirror.welcome.epoch == "two"


async def test_what_happened_before_the_console_began_is_told_too(folder: Path) -> None:
    async with speaking(folder, "one") as peer:
        many = linking.RECENT + 500
        peer.log = [Event(seq=seq, at=seq, type="step_started") for seq in range(1, many + 1)]
        async with following(folder) as mirror:
            await soon(lambda: len(mirror.events) == linking.RECENT, "the newest are told")
            assert mirror.dropped == 0


async def test_a_daemon_that_tells_nothing_but_answers_is_not_lost(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(follower, "SILENCE", 0.02)
    async with speaking(folder, "one") as peer, following(folder) as mirror:
        await soon(lambda: mirror.link.word == "live", "the link is live")
        greeted = len(peer.asked_for("Hello"))
        await soon(lambda: len(peer.asked_for("Hello")) > greeted, "the silence is noticed")
        assert mirror.link.word == "live"


async def test_a_daemon_that_was_never_there_is_looked_for_and_the_tries_are_counted(
    folder: Path,
) -> None:
    async with following(folder) as mirror:
        await soon(lambda: mirror.link.retries >= 3, "it is tried again")
        assert (mirror.link.word, mirror.link.heard) == ("lost", None)
        assert "start it with" in mirror.link.detail


async def test_another_protocol_is_told_as_such_and_not_as_a_loss(folder: Path) -> None:
    async with opened(folder) as peer, following(folder) as mirror:
        peer.replies["Hello"] = welcome(version=99)
        await soon(lambda: mirror.link.word == "version", "the version is seen")
        assert "speaks protocol 99" in mirror.link.detail
