"""Lines that keep coming: output of a job, events. Follows the end until one scrolls away.

A ring of the newest items; what is off screen is not even formatted. Search goes over the
plain text; so do the jumps from error to error.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Generic, TypeVar

from textual.geometry import Size
from textual.message import Message
from textual.reactive import var
from textual.strip import Strip

from redrive_tui import keys
from redrive_tui.formatting import Line, plain_text, width_of
from redrive_tui.sanitize import CUT
from redrive_tui.theme import cursor_style, style
from redrive_tui.widgets.lines import Lines

Item = TypeVar("Item")
KEPT = 20_000


class StreamView(Lines, Generic[Item], can_focus=True):
    BINDINGS = keys.bindings("movement", "text")

    following: var[bool] = var(True, init=False)
    wrapping: var[bool] = var(False, init=False)
    with_times: var[bool] = var(True, init=False)

    class Changed(Message):
        """Following, what was found or what is unseen changed: the banner wants to know."""

    class Missed(Message):
        """Nothing there fits what was looked for."""

        def __init__(self, what: str) -> None:
            super().__init__()
            self.what = what

    class SearchWanted(Message):
        """The operator wants to type what to look for."""

    def __init__(
        self,
        spans: Callable[[Item, bool], Line],
        is_error: Callable[[Item], bool],
        *,
        kept: int = KEPT,
        id: str | None = None,
    ) -> None:
        super().__init__(id=id)
        self.kept = kept
        self.empty = ""  # what stands where nothing is
        self.items: list[Item] = []
        self.unseen = 0
        self.sought = ""
        self.hit: int | None = None  # the item the last search or jump went to
        self._spans = spans
        self._is_error = is_error
        self._shed = 0  # items that have left at the top
        # Wrapped: which item of all there ever were, and the cell its part starts at.
        self._rows: list[tuple[int, int]] = []
        self._cells = 1  # of a line, beside the scroll bar

    # Data in.

    def extend(self, items: Iterable[Item]) -> None:
        before = len(self.items)
        self.items += items
        added = len(self.items) - before
        surplus = max(0, len(self.items) - self.kept)
        if surplus:
            del self.items[:surplus]
            self._shed += surplus
            self.hit = None if self.hit is None else max(0, self.hit - surplus)
        if added:
            self._grown(added, surplus)

    def restart(self, items: Iterable[Item] = ()) -> None:
        self.items, self.unseen, self.hit, self._shed = [], 0, None, 0
        self._lay_out()
        self.extend(items)
        self.repaint()

    def _grown(self, added: int, dropped: int) -> None:
        if self.wrapping:
            dropped = self._go_on(added)
        else:
            self._lay_out()
        if self.following:
            self.action_last()
        else:
            self.unseen += added
            if dropped:
                self.scroll_to(y=max(0, self.scroll_offset.y - dropped), animate=False)
        self.repaint()
        self.post_message(self.Changed())

    @property
    def is_whole(self) -> bool:
        """Whether all there ever was is still here."""
        return not self._shed

    # Painting.

    def strip_on_screen(self, y: int) -> Strip:
        row = self.scroll_offset.y + y
        if row >= self._row_count():
            words: Line = [(self.empty, "dim")] if row == 0 else []
            return self.strip(words).adjust_cell_length(self.size.width, self.blank())
        item, start = self._part(row)
        over = cursor_style(self.theme) if item == self.hit else None
        strip = self._highlighted(self.strip(self._spans(self.items[item], self.with_times), over))
        part = strip.crop(start, start + self._cells)
        if not self.wrapping and strip.cell_length > self._cells:
            part = Strip.join([part.crop(0, self._cells - 1), self.strip([(CUT, "dim")], over)])
        return part.adjust_cell_length(self.size.width, self.blank(over))

    def _highlighted(self, strip: Strip) -> Strip:
        if not self.sought:
            return strip
        found = style(self.theme, "found")
        parts: list[Strip] = []
        text, needle, at = strip.text.casefold(), self.sought.casefold(), 0
        if len(text) != len(strip.text):
            return strip  # a letter that changes its length when folded: no place to point at
        while (place := text.find(needle, at)) >= 0:
            start, end = (
                width_of([(text[:place], "")]),
                width_of([(text[: place + len(needle)], "")]),
            )
            parts += [
                strip.crop(width_of([(text[:at], "")]), start),
                strip.crop(start, end).apply_style(found),
            ]
            at = place + len(needle)
        return Strip.join([*parts, strip.crop(width_of([(text[:at], "")]))]) if parts else strip

    # Rows.

    def _row_count(self) -> int:
        return len(self._rows) if self.wrapping else len(self.items)

    def _part(self, row: int) -> tuple[int, int]:
        """The item on a row, and the cell at which its part on it starts."""
        if not self.wrapping:
            return row, 0
        item, start = self._rows[row]
        return item - self._shed, start

    def _go_on(self, added: int) -> int:
        """Wrap what is new and nothing else; how many rows have left at the top."""
        gone = bisect_left(self._rows, (self._shed, 0))
        del self._rows[:gone]
        self._rows += self._wrapped(max(0, len(self.items) - added))
        if self._cells != self._cells_for(len(self._rows)):
            self._lay_out()
        else:
            self._resize()
        return gone

    def _lay_out(self) -> None:
        self._cells = self._cells_for(0)
        self._rows = list(self._wrapped(0)) if self.wrapping else []
        if (cells := self._cells_for(self._row_count())) != self._cells:
            self._cells = cells
            self._rows = list(self._wrapped(0)) if self.wrapping else []
        self._resize()

    def _cells_for(self, rows: int) -> int:
        """How long a line may be when there are so many."""
        bar = self.bar_width if self.beside_a_bar(rows) else 0
        return max(1, self.size.width - bar)

    def _wrapped(self, first: int) -> Iterable[tuple[int, int]]:
        for number, item in enumerate(islice(self.items, first, None), self._shed + first):
            cells = width_of(self._spans(item, self.with_times))
            yield from ((number, start) for start in range(0, max(1, cells), self._cells))

    def _resize(self) -> None:
        self.virtual_size = Size(self.size.width, self._row_count())

    def on_resize(self) -> None:
        self._lay_out()
        if self.following:
            self.action_last()

    def watch_wrapping(self) -> None:
        top = self._top_item()  # of what was laid out the other way
        self._lay_out()
        if self.following:
            self.action_last()
        elif self.items:
            self.scroll_to(y=self._row_of(top), animate=False)
        self.repaint()
        self.post_message(self.Changed())

    def watch_with_times(self) -> None:
        self.watch_wrapping()

    def watch_following(self) -> None:
        if self.following:
            self.unseen = 0
            self.action_last()
        self.post_message(self.Changed())

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        super().watch_scroll_y(old_value, new_value)
        if new_value < old_value and new_value < self.max_scroll_y:
            self.following = False

    # Keys.

    def action_move(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False)

    def action_page(self, pages: float) -> None:
        self.action_move(int(pages * self.size.height))

    def action_first(self) -> None:
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        # Forced: the first screenful has no scroll bar yet, and without one Textual scrolls nothing.
        self.scroll_to(y=self.max_scroll_y, animate=False, force=True)

    def action_follow(self) -> None:
        self.following = not self.following

    def action_wrap(self) -> None:
        self.wrapping = not self.wrapping

    def action_search(self) -> None:
        self.post_message(self.SearchWanted())

    def search(self, text: str) -> None:
        """Look for a text from here on; empty ends the search."""
        self.sought = text
        self.hit = None
        if text:
            self.action_found(1)
        self.repaint()
        self.post_message(self.Changed())

    def action_found(self, direction: int) -> None:
        needle = self.sought.casefold()
        if needle:
            self._jump(
                direction,
                lambda item: needle in plain_text(self._spans(item, False)).casefold(),
                f"nothing here has {self.sought!r}",
            )

    def action_error(self, direction: int) -> None:
        self._jump(direction, self._is_error, "no line here speaks of an error")

    def _jump(self, direction: int, fits: Callable[[Item], bool], otherwise: str) -> None:
        """To the next item that fits, around the end if need be; or say that none does."""
        count = len(self.items)
        start = self._top_item() - direction if self.hit is None else self.hit
        for step in range(1, count + 1):
            index = (start + direction * step) % count
            if fits(self.items[index]):
                self._go_to(index)
                return
        self.post_message(self.Missed(otherwise))
        self.post_message(self.Changed())

    def _top_item(self) -> int:
        top = self.scroll_offset.y
        return self._rows[top][0] - self._shed if top < len(self._rows) else top

    def _row_of(self, index: int) -> int:
        if not self.wrapping:
            return index
        return bisect_left(self._rows, (self._shed + index, 0))

    def _go_to(self, index: int) -> None:
        self.hit = index
        self.following = False
        self.scroll_to(y=max(0, self._row_of(index) - self.size.height // 3), animate=False)
        self.repaint()
        self.post_message(self.Changed())
