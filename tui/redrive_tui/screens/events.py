"""8 Events: everything that happens, as it happens; what was missed is drawn as missing."""

from __future__ import annotations

from textual import on, work
from textual.app import ComposeResult
from textual.widget import Widget

from redrive_tui import keys
from redrive_tui.event_ring import EVENTS_KEPT, Gap, Kept, opened
from redrive_tui.formatting import Line, apart, count
from redrive_tui.reading import event_line, is_bad
from redrive_tui.screens.pane import Desk, Pane
from redrive_tui.widgets.dialogs import Prompt
from redrive_tui.widgets.lines import Panel
from redrive_tui.widgets.stream_view import StreamView


class EventsPane(Pane):
    context = "events"
    ALLOW_MAXIMIZE = True  # as a whole: its other lines say what one looks at
    BINDINGS = keys.bindings("times")

    DEFAULT_CSS = """
    EventsPane StreamView { height: 1fr; margin-top: 1; }
    """

    def __init__(self, desk: Desk) -> None:
        super().__init__(desk)
        self.top = Panel()
        self.stream = StreamView[Kept](self._spans, self._is_bad, kept=EVENTS_KEPT)
        self.stream.empty = "nothing has happened yet"
        self._taken = 0  # how many the mirror had taken when they were shown
        self._seq = 0  # of the mirror at that time

    def compose(self) -> ComposeResult:
        yield self.top
        yield self.stream

    def show(self) -> None:
        mirror = self.desk.mirror
        if mirror.seq < self._seq:  # another daemon, another log
            self.stream.restart()
        if fresh := mirror.events.since(self._taken):
            self.stream.extend(fresh)
        self._taken, self._seq = mirror.events.taken, mirror.seq
        self._show_top()

    @on(StreamView.Changed)
    def _show_top(self) -> None:
        stream, mirror = self.stream, self.desk.mirror
        follow = "on" if stream.following else f"off · {count(stream.unseen)} new"
        left: Line = [("follow ", "dim"), (follow, "good" if stream.following else "warning")]
        if stream.sought:
            left += [("  searched ", "dim"), (stream.sought, "accent")]
        zone = self.desk.look.zone_name(mirror.now())
        right: Line = [
            (f"times in {zone}  ", "dim"),
            (f"showing {count(len(stream.items))}", "dim"),
        ]
        if mirror.dropped:
            right.append((f" · {count(mirror.dropped)} not received", "warning"))
        self.top.lines = [apart(left, right, self.top.size.width)]

    def _spans(self, kept: Kept, with_times: bool) -> Line:
        item = opened(kept)
        if isinstance(item, Gap):
            missed = f"-- {count(item.missing)} events not received (this console was too slow) --"
            return [(missed, "warning")]
        line = event_line(item, self.as_of, self.desk.look)
        return line if with_times else line[1:]

    @staticmethod
    def _is_bad(kept: Kept) -> bool:
        item = opened(kept)
        return isinstance(item, Gap) or is_bad(item)

    @on(StreamView.SearchWanted)
    @work(group="dialog")
    async def _search(self) -> None:
        text = await self.answer_to(Prompt("Search the events", self.stream.sought))
        if text is not None:
            self.stream.search(text)

    def action_times(self) -> None:
        self.stream.with_times = not self.stream.with_times

    def step_back(self) -> bool:
        if not self.stream.sought:
            return False
        self.stream.search("")
        return True

    def first_focus(self) -> Widget | None:
        return self.stream
