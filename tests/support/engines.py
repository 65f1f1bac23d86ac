"""An engine on a real store, without a daemon around it: its parts are stepped by hand."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from redrive.clock import Clock
from redrive.config import Config, load
from redrive.models import Event
from redrived.engine.engine import Engine
from redrived.engine.timers import Timers
from redrived.store import events
from redrived.store.store import Store
from support.clock import FakeClock


@asynccontextmanager
async def an_engine(
    folder: Path,
    config: str | Config = "",
    *,
    url: str = "",
    name: str = "n1",
    clock: Clock | None = None,
) -> AsyncIterator[Engine]:
    clock = clock or FakeClock()
    if isinstance(config, str):
        file = folder / "config.toml"
        file.write_text(config)
        config = load(file, {}).config
    store = Store(url or f"sqlite:///{folder}/redrive.db", clock, name)
    await store.open()
    try:
        yield Engine(
            config,
            store,
            clock,
            Timers(clock),
            node=name,
            epoch="epoch",
            state_dir=folder,
            runtime_dir=folder,
            drain=lambda: None,
        )
    finally:
        await store.close()


async def told(engine: Engine, *kinds: str) -> list[Event]:
    """The events so far, or those of some kinds."""
    found = await engine.store.read(events.after, 0, 100_000)
    return [event for event in found if not kinds or event.type in kinds]
