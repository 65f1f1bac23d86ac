"""A daemon whose socket files are gone, and cannot be made anew, does not look well."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from redrive.config.sections import Bus as Settings
from redrive.protocol.queries import Status
from redrived.api.bridge import Bridge
from redrived.api.status import status
from redrived.bus import Bus
from redrived.engine.health import Health
from redrived.notify import Notifier
from support.engine import TESTER
from support.http_side import Side, http_side
from support.systemd import NotifySocket

WHY = "the socket files are gone and cannot be made anew"


@pytest.fixture
async def side(tmp_path: Path) -> AsyncIterator[Side]:
    async with http_side(tmp_path) as made:
        yield made


@pytest.fixture
async def bus(side: Side, tmp_path: Path) -> AsyncIterator[Bus]:
    made = Bus(Settings(), tmp_path / "s", "one")
    bridge = Bridge(side.engine, made)
    await bridge.start()
    yield made
    await bridge.stop()


@pytest.fixture
def notify(tmp_path: Path) -> Iterator[NotifySocket]:
    made = NotifySocket(tmp_path)
    yield made
    made.close()


@pytest.fixture
def health(side: Side, notify: NotifySocket, monkeypatch: pytest.MonkeyPatch) -> Iterator[Health]:
    for name, value in notify.env().items():
        monkeypatch.setenv(name, value)
    notifier = Notifier()
    yield Health(side.engine, notifier)
    notifier.close()


def lose_the_folder(tmp_path: Path) -> None:
    """A file in its place stands for a folder above that is not the daemon's, also for root."""
    shutil.rmtree(tmp_path / "s")
    (tmp_path / "s").touch()


async def test_it_is_told_wherever_somebody_looks_until_it_is_over(
    side: Side, bus: Bus, health: Health, notify: NotifySocket, tmp_path: Path
) -> None:
    lose_the_folder(tmp_path)
    bus.look_after_files()

    await health.tell_status()
    told = notify.wait_for("STATUS")["STATUS"]
    assert told.startswith(f"unreachable: {WHY}")
    assert told.endswith("restart the service")
    ready = await side.get("/readyz")
    assert (ready.status_code, WHY in ready.json()["title"]) == (503, True)
    assert "\nredrive_unreachable 1.0\n" in (await side.get("/metrics")).text
    attention = (await status(side.engine, TESTER, Status())).attention
    assert [(each.kind, each.severity) for each in attention] == [("sockets", "error")]

    (tmp_path / "s").unlink()
    bus.look_after_files()

    await health.tell_status()
    notify.wait_for("STATUS", "running: ")
    assert (await side.get("/readyz")).status_code == 200
    assert "\nredrive_unreachable 0.0\n" in (await side.get("/metrics")).text


async def test_the_watchdog_does_not_end_jobs_for_it(
    side: Side, bus: Bus, health: Health, tmp_path: Path
) -> None:
    lose_the_folder(tmp_path)
    bus.look_after_files()
    await health.tick()
    assert health.ailment is None


async def test_the_log_says_it_once(
    bus: Bus, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    lose_the_folder(tmp_path)
    for _ in range(3):
        bus.look_after_files()
    assert caplog.text.count(WHY) == 1
