"""`:` and ctrl+p: everything that has a name: screens, verbs, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from textual.command import DiscoveryHit, Hit, Hits, Provider

from redrive_tui.keys import Key, keys_of
from redrive_tui.palettes import PALETTES

if TYPE_CHECKING:
    from redrive_tui.app import Console


class Commands(Provider):
    """What can be done here and now; instant, because nothing is asked of anybody."""

    async def discover(self) -> Hits:
        for name, help, run in self._entries():
            yield DiscoveryHit(name, run, help=help)

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for name, help, run in self._entries():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), run, help=help)

    @property
    def console(self) -> Console:
        return cast("Console", self.app)  # pyright: ignore[reportUnknownMemberType]

    def _entries(self) -> Iterator[tuple[str, str, Callable[[], None]]]:
        console = self.console
        for key in keys_of(console.pane.context):
            if key.id and not key.id.startswith("move."):
                yield key.description, key.keys, self._pressing(key)
        for theme in PALETTES:
            yield f"theme: {theme}", "colours", self._wearing(theme)
        yield "quit", "the daemon goes on", console.exit

    def _pressing(self, key: Key) -> Callable[[], None]:
        return lambda: self.console.press(key)

    def _wearing(self, theme: str) -> Callable[[], None]:
        def wear() -> None:
            self.console.theme = theme

        return wear
