from __future__ import annotations

from pathlib import Path

import pytest

from redrive.clock import SystemClock
from redrive.protocol.queries import Doctor
from redrive.protocol.rows import Check
from redrived.api.doctor import doctor
from redrived.api.server import Asker
from redrived.engine.disk import Room
from redrived.engine.engine import Engine
from redrived.store import soundness
from redrived.store.say import Said, say
from support.clock import FakeClock
from support.daemon import soon
from support.databases import other_server, postgresql_url
from support.engines import an_engine

ASKER = Asker(who="me", role="viewer")


async def findings(engine: Engine) -> dict[str, Check]:
    return {
        check.name: check
        for check in (await doctor(engine, ASKER, Doctor())).checks
        if not check.ok
    }


@pytest.mark.parametrize("kind", ["sqlite", "postgresql"])
async def test_a_daemon_that_is_well_finds_nothing(tmp_path: Path, kind: str) -> None:
    url = postgresql_url() if kind == "postgresql" else ""
    async with an_engine(tmp_path, url=url, clock=SystemClock()) as engine:
        await engine.disk.look()
        assert await findings(engine) == {}


async def test_a_full_disk_a_changed_config_and_the_future_are_found(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        engine.disk.room = Room(str(tmp_path), free=1, total=10)
        (tmp_path / "config.toml").write_text("[tasks.new]\ncommand = ['true']")
        await engine.store.submit(say, Said("disk_low", {}))
        assert isinstance(engine.clock, FakeClock)
        engine.clock.move(-3600)
        found = await findings(engine)
    assert found.keys() == {"disk", "config on disk", "clock"}
    assert "redrive.db" in found["disk"].text
    assert "3600 s in the future" in found["clock"].text
    assert "tasks" in found["config on disk"].text


async def test_a_file_that_was_moved_is_named_with_what_to_do(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        path = engine.store.database.path
        aside = path.with_name("aside.db")
        path.rename(aside)
        waiting = engine.store.submit(say, Said("disk_low", {}))
        await soon(lambda: engine.store.writer.trouble, "the file is missed")
        found = (await findings(engine))["store"]
        assert not path.exists(), "whoever only reads makes no empty one"
        aside.rename(path)
        await waiting
    assert f"{path} is missing" in found.text
    assert "once that very file is back" in found.hint
    assert "redrive restore FILE" in found.hint


async def test_a_bad_config_on_disk_is_found_before_the_next_start(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        (tmp_path / "config.toml").write_text("[task.new]")
        found = await findings(engine)
    assert "task" in found["config on disk"].text


async def test_a_database_that_is_away_is_one_finding_and_hides_no_other(tmp_path: Path) -> None:
    with other_server() as server:
        async with an_engine(tmp_path, url=server.url, clock=SystemClock()) as engine:
            engine.disk.room = Room(str(tmp_path), free=1, total=10)
            server.stop()
            found = await findings(engine)
            server.start()
    assert found.keys() == {"store", "disk"}
    assert "the store cannot be asked now" in found["store"].text


async def test_a_large_store_is_not_looked_at_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(soundness, "PATIENCE", -1.0)
    async with an_engine(tmp_path) as engine:
        assert "store" not in await findings(engine)
