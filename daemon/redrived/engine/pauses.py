"""What is paused, as the dispatcher asks for it; the store holds the truth."""

from __future__ import annotations

from collections.abc import Callable, Collection

from redrive.protocol.rows import Pause
from redrived.store import pauses
from redrived.store.pauses import Pausing
from redrived.store.store import Store

Began = Collection[tuple[str, str]]  # what was not paused before: kinds and names


class Pauses:
    """Read at the start and after every change; used by the main loop only."""

    def __init__(self, store: Store) -> None:
        self.when_changed: list[Callable[[Began], None]] = []
        self._store = store
        self._paused: dict[tuple[str, str], Pause] = {}
        self._asked = self._answered = 0  # an answer never replaces one that was asked for later

    async def read(self) -> None:
        """Ask the store, and tell of what is news, wherever it was asked for."""
        self._asked += 1
        asked = self._asked
        found = {(pause.kind, pause.name): pause for pause in await self._store.read(pauses.read)}
        if asked < self._answered:
            return
        self._answered = asked
        if found == self._paused:
            return
        began = found.keys() - self._paused.keys()
        self._paused = found
        for tell in self.when_changed:
            tell(began)

    async def change(self, wish: Pausing) -> bool:
        changed = await self._store.submit(pauses.pause, wish)
        await self.read()
        return changed

    def has(self, kind: str, name: str) -> bool:
        return (kind, name) in self._paused

    def get(self, kind: str, name: str) -> Pause | None:
        return self._paused.get((kind, name))

    def names(self, kind: str) -> Collection[str]:
        return [name for found, name in self._paused if found == kind]

    def all(self) -> list[Pause]:
        return list(self._paused.values())
