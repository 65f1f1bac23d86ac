"""A breaker opens on its share of failures, lets one probe through, and survives a restart."""

from __future__ import annotations

from pathlib import Path

from redrive.lifecycle import JobState
from support.engine import running

CONFIG = """
[retry.quick]
max_attempts = 50
delays = ["10ms"]
jitter = 0

[tasks.call]
command = "test -e up || exit 75"
retry = "quick"
concurrency = 2
breaker = { share = 0.5, window = "1m", probe_every = "100ms", at_least = 3 }
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
