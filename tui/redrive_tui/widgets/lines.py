"""Lines of spans on the screen: what every widget of the console is made of.

Textual paints whole widgets; over a slow link that is what one notices. A widget here
remembers what it drew and, asked to `repaint`, sends only what came out different.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual.geometry import Region, Size
from textual.reactive import var
from textual.scroll_view import ScrollView
from textual.strip import Strip

from redrive_tui import keys
from redrive_tui.formatting import Line, wrapped
from redrive_tui.sanitize import clean
from redrive_tui.theme import style


class Lines(ScrollView, can_focus=False):
    """The base: a subclass says what stands on a line of the screen."""

    DEFAULT_CSS = """
    Lines {
        background: $background;
        color: $foreground;
        overflow-x: hidden;
        scrollbar-size-vertical: 1;
    }
    """

    scrolls: ClassVar[bool] = True

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:
        super().__init__(id=id, classes=classes)
        self._drawn: dict[int, Strip] = {}
        self._blank: Style | None = None  # costly to ask for, and the same until styles change

    @property
    def theme(self) -> str:
        return self.app.theme  # pyright: ignore[reportUnknownMemberType]  # App is generic

    def line_on_screen(self, y: int) -> tuple[Line, Style | None]:
        """What stands on line `y` of the visible part, and a style laid over all of it."""
        raise NotImplementedError

    def strip_on_screen(self, y: int) -> Strip:
        line, over = self.line_on_screen(y)
        return self.strip(line, over).adjust_cell_length(self.size.width, self.blank(over))

    def render_line(self, y: int) -> Strip:
        strip = self.strip_on_screen(y)
        self._drawn[y] = strip
        return strip

    def repaint(self) -> None:
        """Draw again what came out different."""
        for y in range(self.size.height):
            drawn, strip = self._drawn.get(y), self.strip_on_screen(y)
            if drawn != strip:
                left, width = (0, self.size.width) if drawn is None else changed(drawn, strip)
                self.refresh(Region(left, y, width, 1))

    def watch_show_vertical_scrollbar(self, shown: bool) -> None:
        """A bar that appears stands where the view is: it has not seen what was scrolled before."""
        if shown:
            self.vertical_scrollbar.position = self.scroll_y

    def beside_a_bar(self, lines: int) -> bool:
        """Whether so many lines are more than fit, so that a scroll bar takes the last column."""
        return self.scrolls and lines > self.size.height > 0

    @property
    def bar_width(self) -> int:
        return self.styles.scrollbar_size_vertical

    def notify_style_update(self) -> None:
        super().notify_style_update()
        self._drawn.clear()
        self._blank = None

    def strip(self, line: Line, over: Style | None = None) -> Strip:
        """A line in the colours of the theme, as long as it is.

        Whoever made the line has cleaned what came from outside, before measuring it. Here is
        where it is drawn, so here is where a forgotten one is still caught.
        """
        theme, blank = self.theme, self.blank()
        segments: list[Segment] = []
        look = blank
        for text, role in line:
            if segments and not role and text.isspace() and _is_unseen(look, blank):
                segments[-1] = Segment(segments[-1].text + text, segments[-1].style)
            elif text:
                look = blank + style(theme, role)
                shown = text if text.isprintable() else clean(text)
                segments.append(Segment(shown, look + over if over else look))
        return Strip(segments)

    def blank(self, over: Style | None = None) -> Style:
        if self._blank is None:
            self._blank = self.rich_style
        return self._blank + over if over else self._blank


def _is_unseen(look: Style, blank: Style) -> bool:
    """Whether spaces in this look are spaces like any other: they go with what stands before."""
    return look.bgcolor == blank.bgcolor and not (look.underline or look.reverse or look.strike)


def changed(before: Strip, after: Strip) -> tuple[int, int]:
    """Where two strips of one length differ: the first cell, and how many there are from it."""
    left = _alike(before, after)
    right = _alike(list(before)[::-1], list(after)[::-1])
    return left, max(0, after.cell_length - left - right)


def _alike(before: Iterable[Segment], after: Iterable[Segment]) -> int:
    """How many cells two rows of segments have in common before the first that differs."""
    cells = 0
    for one, other in zip(before, after, strict=False):
        if one != other:
            break
        cells += one.cell_length
    return cells


class TextView(Lines, can_focus=True):
    """A page of text to read and scroll; what is too long goes on below."""

    BINDINGS = keys.bindings("movement")

    lines: var[list[Line]] = var(list[Line], init=False)

    def __init__(
        self,
        lines: list[Line] | None = None,
        *,
        wraps: bool = True,
        id: str | None = None,
        classes: str | None = None,
    ) -> None:
        super().__init__(id=id, classes=classes)
        self.wraps = wraps
        self.set_reactive(TextView.lines, lines or [])
        self._wrapped: list[Line] = self.lines

    def on_resize(self) -> None:
        self._wrap()

    def watch_lines(self) -> None:
        self._wrap()
        self.repaint()

    def wrapped_to(self, width: int) -> list[Line]:
        if not self.wraps:
            return self.lines
        return [part for line in self.lines for part in wrapped(line, width)]

    def _wrap(self) -> None:
        self._wrapped = self.wrapped_to(self.size.width)
        if self.beside_a_bar(len(self._wrapped)):
            self._wrapped = self.wrapped_to(self.size.width - self.bar_width)
        self.virtual_size = Size(self.size.width, len(self._wrapped))

    def get_content_height(self, container: Size, viewport: Size, width: int) -> int:
        return len(self.wrapped_to(width))

    def line_on_screen(self, y: int) -> tuple[Line, Style | None]:
        row = y + self.scroll_offset.y
        return (self._wrapped[row] if row < len(self._wrapped) else []), None

    def action_move(self, rows: int) -> None:
        self.scroll_to(y=self.scroll_offset.y + rows, animate=False)

    def action_page(self, pages: float) -> None:
        self.scroll_to(y=self.scroll_offset.y + int(pages * self.size.height), animate=False)

    def action_first(self) -> None:
        self.scroll_to(y=0, animate=False)

    def action_last(self) -> None:
        self.scroll_to(y=self.max_scroll_y, animate=False)


class Panel(TextView, can_focus=False):
    """Lines that only stand there: a header, a banner, guidance."""

    DEFAULT_CSS = """
    Panel { height: auto; overflow-y: hidden; }
    """
    scrolls: ClassVar[bool] = False

    def watch_lines(self) -> None:
        super().watch_lines()
        if self.size.height != len(self._wrapped):
            self.refresh(layout=True)


class Heading(Lines):
    """The name of what stands below it, and a rule to the edge."""

    DEFAULT_CSS = """
    Heading { height: 1; }
    """

    title: var[str] = var("", init=False)

    def __init__(self, title: str, *, rule: str = "─", id: str | None = None) -> None:
        super().__init__(id=id)
        self.set_reactive(Heading.title, title)
        self._rule = rule

    def watch_title(self) -> None:
        self.repaint()

    def line_on_screen(self, y: int) -> tuple[Line, Style | None]:
        ruled = self._rule * max(0, self.size.width - len(self.title) - 1)
        return [(self.title, "title"), (f" {ruled}", "rule")], None
