"""A table with a cursor that belongs to a thing, not to a row.

Columns have fixed widths, one may take what is left; those that do not fit step aside. The
header stays. When the rows change, the cursor stays on the thing it was on, at the same
height on the screen; if that thing is gone, the next key that acts is refused once.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Hashable, Sequence
from typing import Generic, TypeVar

from msgspec import Struct
from rich.style import Style
from textual import events
from textual.geometry import Size
from textual.message import Message
from textual.reactive import var

from redrive_tui import keys
from redrive_tui.formatting import Line, fit
from redrive_tui.theme import cursor_style
from redrive_tui.widgets.lines import Lines

Row = TypeVar("Row")
GUTTER = 2  # the cursor and the mark
LEAST_WIDTH = 8  # of the column that takes what is left


class Column(Struct, frozen=True):
    title: str
    width: int  # 0 takes what is left
    right: bool = False
    from_width: int = 0  # shown when the table is at least this wide


class Table(Lines, can_focus=True):
    """The base: a subclass knows its rows."""

    BINDINGS = keys.bindings("movement", "open")

    cursor: var[int] = var(0, init=False)

    class Opened(Message):
        """Enter, or a double click, on the row under the cursor."""

        def __init__(self, table: Table) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> Table:
            return self.table

    class Moved(Message):
        """The cursor is on another row."""

        def __init__(self, table: Table) -> None:
            super().__init__()
            self.table = table

        @property
        def control(self) -> Table:
            return self.table

    def __init__(
        self,
        columns: Sequence[Column],
        *,
        id: str | None = None,
        header: bool = True,
        empty: str = "nothing here",
    ) -> None:
        super().__init__(id=id)
        self.columns = list(columns)
        self.empty = empty  # what stands where no row is
        self.header_lines = 1 if header else 0
        self.points = True  # at the row of the cursor, also while others have the keyboard
        # What the cursor was on, when that has left the list and nobody has noticed yet.
        self.lost: Hashable = None
        self._sent_away: Collection[Hashable] = ()

    # What a subclass knows.

    def row_count(self) -> int:
        raise NotImplementedError

    def cells(self, row: int) -> list[Line] | None:
        """The cells of a row, one per column; None while it is not known yet."""
        raise NotImplementedError

    def is_known(self) -> bool:
        """Whether anybody has said yet which rows there are."""
        raise NotImplementedError

    def is_marked(self, row: int) -> bool:
        return False

    # Painting.

    def line_on_screen(self, y: int) -> tuple[Line, Style | None]:
        if y < self.header_lines:
            return self._header(), None
        row = self.scroll_offset.y + y - self.header_lines
        if row >= self.row_count():
            words = self.empty if self.is_known() else "···"
            return ([(f"  {words}", "dim")] if row == 0 else []), None
        lit = row == self.cursor and self.has_focus
        over = cursor_style(self.theme) if lit else None
        return self._row(row), over

    def _header(self) -> Line:
        cells: list[Line] = [[(column.title, "title")] for column in self.columns]
        return [(" " * GUTTER, ""), *self._laid_out(cells)]

    def _row(self, row: int) -> Line:
        here = row == self.cursor and (self.points or self.has_focus)
        marked = self.is_marked(row)
        gutter: Line = [
            (">" if here else " ", "accent" if self.has_focus else "dim"),
            ("*" if marked else " ", "marked"),
        ]
        cells = self.cells(row)
        if cells is None:
            return [*gutter, ("···", "dim")]
        return [*gutter, *self._laid_out(cells)]

    def _laid_out(self, cells: list[Line]) -> Line:
        line: Line = []
        for column, cell, width in zip(self.columns, cells, self._widths(), strict=True):
            if width:
                line += [*fit(cell, width, right=column.right), ("  ", "")]
        return line

    def _widths(self) -> list[int]:
        """The width of each column now; 0 for one that has stepped aside."""
        room = self.size.width
        shown = [column for column in self.columns if room >= column.from_width]
        fixed = sum(column.width + 2 for column in shown)
        rest = max(LEAST_WIDTH, room - GUTTER - fixed)
        return [(column.width or rest) if column in shown else 0 for column in self.columns]

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return max(1, self.row_count()) + self.header_lines

    # The cursor.

    def resized(self) -> None:
        """The number of rows changed."""
        self.virtual_size = Size(self.size.width, self.row_count() + self.header_lines)
        self.set_reactive(Table.cursor, max(0, min(self.cursor, self.row_count() - 1)))

    def on_resize(self) -> None:
        self.resized()
        self._keep_in_view()

    def put_cursor(self, row: int, *, screen_row: int) -> None:
        """Place the cursor on a row, at a height of the screen."""
        self.set_reactive(Table.cursor, max(0, min(row, self.row_count() - 1)))
        self.scroll_to(y=max(0, self.cursor - screen_row), animate=False)
        self._keep_in_view()

    @property
    def screen_row(self) -> int:
        return self.cursor - self.scroll_offset.y

    def lose(self, what: Hashable) -> None:
        """The row under the cursor has left the list."""
        if what not in self._sent_away:
            self.lost = what

    def send_away(self, keys: Collection[Hashable]) -> None:
        """The operator did something to these: that they leave the list is no surprise."""
        self._sent_away = keys
        if self.lost in keys:
            self.lost = None

    def validate_cursor(self, row: int) -> int:
        return max(0, min(row, self.row_count() - 1))

    def watch_cursor(self) -> None:
        self.lost = None
        self._keep_in_view()
        self.repaint()
        self.post_message(self.Moved(self))

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """The wheel and the scroll bar take the cursor along: no key acts on what is not seen."""
        super().watch_scroll_y(old_value, new_value)
        top = round(new_value)
        last = top + max(1, self.size.height - self.header_lines) - 1
        self.cursor = max(top, min(self.cursor, last))

    def _keep_in_view(self) -> None:
        room = max(1, self.size.height - self.header_lines)
        top = self.scroll_offset.y
        if self.cursor < top:
            self.scroll_to(y=self.cursor, animate=False)
        elif self.cursor >= top + room:
            self.scroll_to(y=self.cursor - room + 1, animate=False)

    def on_focus(self) -> None:
        self.repaint()

    def on_blur(self) -> None:
        self.repaint()

    def on_click(self, event: events.Click) -> None:
        row = self.scroll_offset.y + event.y - self.header_lines
        if event.y < self.header_lines or row >= self.row_count():
            return
        if row == self.cursor and event.chain > 1:
            self.action_open()
        self.cursor = row

    def action_move(self, rows: int) -> None:
        self.cursor += rows

    def action_page(self, pages: float) -> None:
        self.cursor += int(pages * (self.size.height - self.header_lines))

    def action_first(self) -> None:
        self.cursor = 0

    def action_last(self) -> None:
        self.cursor = self.row_count() - 1

    def action_open(self) -> None:
        if self.row_count():
            self.post_message(self.Opened(self))


class RecordTable(Table, Generic[Row]):
    """A table over a short list of records that is handed in whole."""

    def __init__(
        self,
        columns: Sequence[Column],
        cells: Callable[[Row], list[Line]],
        key: Callable[[Row], Hashable],
        *,
        id: str | None = None,
        header: bool = True,
        empty: str = "nothing here",
    ) -> None:
        super().__init__(columns, id=id, header=header, empty=empty)
        self._cells = cells
        self._key = key
        self.rows: list[Row] = []
        self._is_known = False

    def show(self, rows: Sequence[Row]) -> None:
        before = self.current
        screen_row = self.screen_row
        if (len(rows) or 1) != (len(self.rows) or 1) and self.styles.is_auto_height:
            self.refresh(layout=True)
        self.rows = list(rows)
        self._is_known = True
        self.resized()
        places = {self._key(row): index for index, row in enumerate(self.rows)}
        if before is not None:
            place = places.get(self._key(before))
            if place is None:
                self.lose(self._key(before))
            self.put_cursor(self.cursor if place is None else place, screen_row=screen_row)
        self.repaint()

    def forget(self) -> None:
        """What was shown is not about this any more; what is, nobody has said yet."""
        self.show([])
        self.lost = None
        self._is_known = False

    @property
    def current(self) -> Row | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    def row_count(self) -> int:
        return len(self.rows)

    def is_known(self) -> bool:
        return self._is_known

    def cells(self, row: int) -> list[Line] | None:
        return self._cells(self.rows[row])

    def move_to(self, key: Hashable) -> None:
        for index, row in enumerate(self.rows):
            if self._key(row) == key:
                self.cursor = index
