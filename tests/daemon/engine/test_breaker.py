"""A breaker opens on its share of failures, lets one probe through, and survives a restart."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrived.engine.window import PARTS, Window
from redrived.store.settle import Completed
from support.engine import Bench, running
from support.engines import an_engine

BREAKER = 'breaker = { share = 0.5, window = "1m", probe_every = "100ms", at_least = 3 }'
CONFIG = f"""
[retry.quick]
max_attempts = 50
delays = ["10ms"]
jitter = 0

[tasks.call]
command = "test -e up || exit 75"
retry = "quick"
concurrency = 2
{BREAKER}
"""


async def test_an_outage_opens_the_breaker_and_a_probe_closes_it(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        ids = await bench.enqueue("call", 4)
        opened = await bench.event("breaker_opened")
        assert opened.data["task"] == "call"
        assert "failed transiently" in opened.data["why"]

        burnt = sum([(await bench.job(id)).attempts for id in ids])
        (tmp_path / "up").touch()
        await bench.event("breaker_closed")
        for id in ids:
            assert (await bench.ended(id)).state is JobState.DONE
        assert burnt <= 3 + 2  # those that opened it, and what ran beside them


async def test_an_open_breaker_is_still_open_after_a_restart(tmp_path: Path) -> None:
    slow = CONFIG.replace("100ms", "1h")
    async with running(tmp_path, slow) as bench:
        await bench.enqueue("call", 4)
        await bench.event("breaker_opened")

    async with running(tmp_path, slow) as bench:
        assert bench.engine.breakers.is_open("call")
        assert not bench.engine.breakers.is_probing("call")
        assert bench.engine.dispatcher.room().tasks == {}


@pytest.mark.parametrize("by", ["reload", "restart"])
async def test_a_breaker_that_the_config_has_no_more_keeps_nothing_back(
    tmp_path: Path, by: str
) -> None:
    slow = BREAKER.replace("100ms", "1h")
    async with running(tmp_path, CONFIG.replace(BREAKER, slow)) as bench:
        ids = await bench.enqueue("call", 4)
        await bench.event("breaker_opened")
        if by == "reload":
            await reload(bench, tmp_path, slow, "")
            await bench.event("breaker_closed")

    async with running(tmp_path, CONFIG.replace(BREAKER, "")) as bench:
        assert bench.engine.breakers.all() == []
        (tmp_path / "up").touch()
        for id in ids:
            assert (await bench.ended(id)).state is JobState.DONE


async def test_an_open_breaker_probes_at_the_pace_of_today(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG.replace("100ms", "1h")) as bench:
        await bench.enqueue("call", 4)
        await bench.event("breaker_opened")
        (tmp_path / "up").touch()
        await reload(bench, tmp_path, "1h", "100ms")
        await bench.event("breaker_closed")


async def reload(bench: Bench, folder: Path, old: str, new: str) -> None:
    file = folder / "config.toml"
    file.write_text(file.read_text().replace(old, new))
    await bench.engine.reloader.reload(dry_run=False, by="tester")


async def test_each_of_many_successes_that_are_told_together_counts(tmp_path: Path) -> None:
    async with an_engine(tmp_path, CONFIG) as engine:
        done = [Completed(job, 1, None, 0, 1, "default", "call") for job in range(6)]
        engine.settler.completed(done)
        for _ in range(4):
            engine.breakers.note("call", failed_transiently=True)
        assert not engine.breakers.is_open("call")
        engine.breakers.note("call", failed_transiently=True)
        engine.breakers.note("call", failed_transiently=True)
        assert engine.breakers.is_open("call")
        assert engine.breakers.all()[0].why.startswith("6 of 12 attempts")


async def test_what_is_told_with_the_success_that_closes_it_counts_from_then_on(
    tmp_path: Path,
) -> None:
    async with an_engine(tmp_path, CONFIG) as engine:
        for _ in range(3):
            engine.breakers.note("call", failed_transiently=True)
        assert engine.breakers.is_open("call")
        engine.breakers.note("call", failed_transiently=False, n=6)
        for _ in range(4):
            engine.breakers.note("call", failed_transiently=True)
        assert not engine.breakers.is_open("call")
        engine.breakers.note("call", failed_transiently=True)
        assert engine.breakers.all()[0].why.startswith("5 of 10 attempts")


def test_what_is_older_than_its_window_counts_no_more() -> None:
    window = Window(60.0)
    for second in range(120):
        window.note(float(second), failed=second < 60)
    assert (window.ends, window.failures) == (61, 1)
    window.note(120.0, failed=False)
    assert (window.ends, window.failures) == (61, 0)


def test_a_window_holds_counts_and_no_more_of_them_than_it_has_parts() -> None:
    window = Window(60.0)
    for n in range(100_000):
        window.note(n / 500, failed=n % 2 == 0)
    assert len(window._parts) <= PARTS + 1
    assert abs(window.ends - 60 * 500) <= 60 * 500 / PARTS + 1
    assert abs(window.failures - window.ends / 2) <= 1
