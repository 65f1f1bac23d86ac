"""`:` and ctrl+p: everything that has a name: screens, verbs, saved views, themes."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, cast

from textual import on
from textual.command import CommandPalette, DiscoveryHit, Hit, Hits, Provider
from textual.widgets import Input

from redrive_tui.keys import Key, keys_of
from redrive_tui.palettes import PALETTES
from redrive_tui.sanitize import clean

if TYPE_CHECKING:
    from redrive_tui.app import Console

VIEW = "view "


class Palette(CommandPalette):
    """Textual's own, which would search for the last letters also after it was left.

    It would end the console then: it finds the list gone in which it shows what it has found.
    """

    @on(Input.Changed)
    def _typed(self, event: Input.Changed) -> None:
        if not self.is_current:
            event.stop()
            event.prevent_default()


class Commands(Provider):
    """What can be done here and now; instant, because nothing is asked of anybody."""

    async def discover(self) -> Hits:
        for name, help, run in self._entries():
            yield DiscoveryHit(name, run, help=help)

    async def search(self, query: str) -> Hits:
        if (name := query.strip().removeprefix(VIEW).strip()) and query.startswith(VIEW):
            for hit in self._savings(name):
                yield hit
        matcher = self.matcher(query)
        for name, help, run in self._entries():
            if (score := matcher.match(name)) > 0:
                yield Hit(score, matcher.highlight(name), run, help=help)

    @property
    def console(self) -> Console:
        return cast("Console", self.app)  # pyright: ignore[reportUnknownMemberType]

    def _entries(self) -> Iterator[tuple[str, str, Callable[[], object]]]:
        console = self.console
        for key in keys_of(console.pane.keys_context):
            if key.id and not key.id.startswith("move."):
                yield key.description, key.keys, self._pressing(key)
        for name, filter in console.settings.views.filters.items():
            yield f"{VIEW}{clean(name)}", clean(filter), self._viewing(filter)
            yield f"forget {VIEW}{clean(name)}", clean(filter), self._forgetting(name)
        for theme in PALETTES:
            yield f"theme: {theme}", "colours", self._wearing(theme)
        yield "quit", "the daemon goes on", console.exit

    def _savings(self, name: str) -> Iterator[Hit]:
        """`view NAME` for a name that is not taken yet keeps the filter of the jobs under it."""
        console = self.console
        filter = console.filter_in_force
        if not filter or name in console.settings.views.filters:
            return
        text = f"{VIEW}{clean(name)}: save this filter"
        yield Hit(1.0, text, lambda: console.save_view(name, filter), text=text, help=clean(filter))

    def _viewing(self, filter: str) -> Callable[[], object]:
        return lambda: self.console.view(filter)

    def _forgetting(self, name: str) -> Callable[[], None]:
        return lambda: self.console.forget_view(name)

    def _pressing(self, key: Key) -> Callable[[], None]:
        return lambda: self.console.press(key)

    def _wearing(self, theme: str) -> Callable[[], None]:
        def wear() -> None:
            self.console.theme = theme

        return wear
