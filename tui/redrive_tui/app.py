"""The console: composes the screens and routes between them; what anything means is elsewhere."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import ClassVar

from msgspec import Struct, field
from textual import on, work
from textual.app import App, ComposeResult
from textual.driver import Driver
from textual.filter import LineFilter, NoColor
from textual.widgets import ContentSwitcher
from textual.worker import Worker, WorkerFailed, WorkerState

from redrive.clock import Clock, SystemClock
from redrive_tui import copying, frame, keys
from redrive_tui.acting import Acting, Question, Severity
from redrive_tui.ascii import Ascii
from redrive_tui.command_log import CommandLog
from redrive_tui.formatting import Line, Look
from redrive_tui.hints import filter_hints, hints
from redrive_tui.mirror import Mirror
from redrive_tui.palette import Commands, Palette
from redrive_tui.palettes import DEFAULT, MONO, PALETTES
from redrive_tui.reading import command_lines
from redrive_tui.sanitize import clean
from redrive_tui.screens import PANES
from redrive_tui.screens.help import Help, filter_help
from redrive_tui.screens.job import JobPane
from redrive_tui.screens.jobs import JobsPane
from redrive_tui.screens.pane import Desk, Pane, fault_of
from redrive_tui.source import Source
from redrive_tui.theme import textual_theme
from redrive_tui.views import Views
from redrive_tui.widgets.confirm import Confirm
from redrive_tui.widgets.dialogs import Page
from redrive_tui.widgets.filter_bar import FilterBar, FilterInput
from redrive_tui.widgets.lines import Panel
from redrive_tui.wishes import Options

TICK = 0.25  # seconds between looks at the mirror
TOASTS = 3  # at once; all of them are in the log
STEPS_BACK = 100


class Settings(Struct, frozen=True, kw_only=True):
    """How this console was started."""

    theme: str = DEFAULT
    look: Look = Look()
    keymap: Mapping[str, str] = {}
    read_only: bool = False
    views: Views = field(default_factory=Views)


class Visit(Struct, frozen=True):
    """A place one has been."""

    screen: str
    job: int | None = None
    tab: str = ""


class Console(App[None]):
    TITLE = "redrive"
    CSS_PATH = "console.tcss"
    COMMANDS = {Commands}
    HORIZONTAL_BREAKPOINTS = [(0, "-tiny"), (60, "-narrow"), (80, "-normal"), (120, "-wide")]
    VERTICAL_BREAKPOINTS = [(0, "-short"), (20, "-middling"), (28, "-tall")]
    BINDINGS = keys.bindings("everywhere")
    ALLOW_SELECT: ClassVar[bool] = False
    ALLOW_IN_MAXIMIZED_VIEW = "#header, #banner, #hints"
    ESCAPE_TO_MINIMIZE = False  # one step back at a time: a field comes before the zoom

    def __init__(
        self, source: Source, settings: Settings | None = None, clock: Clock | None = None
    ) -> None:
        super().__init__()
        self.settings = settings = settings or Settings()
        self._ascii = Ascii()
        self.source = source
        self.mirror = Mirror(clock or SystemClock())
        self.commands_log = CommandLog()
        self.desk = Desk(
            source=source, mirror=self.mirror, log=self.commands_log, look=settings.look
        )
        self.acting = Acting(
            source,
            self.mirror,
            self.commands_log,
            ask=self._confirm,
            say=self.say,
            read_only=settings.read_only,
        )
        self._been: deque[Visit] = deque(maxlen=STEPS_BACK)
        self._here = Visit("overview")
        self._dated: tuple[object, ...] | None = None  # when the header was written
        self._settling: Worker[None] | None = None
        self._visited: dict[str, Pane] = {}  # mounted when first looked at
        self.header = Panel([[]], id="header")
        self.tabs = Panel([[]], id="tabs")
        self.banner = Panel(id="banner")
        self.panes = ContentSwitcher(id="panes")
        self.hints = Panel([[]], id="hints")
        for name in PALETTES:
            self.register_theme(textual_theme(name))
        self.theme = MONO if self.no_color else settings.theme
        self.animation_level = "none"

    def get_line_filters(self) -> list[LineFilter]:
        """Under NO_COLOR Textual paints grey; the mono theme paints nothing."""
        filters: list[LineFilter] = [*super().get_line_filters()]
        if self.theme == MONO:
            filters = [NoColor()]
        if self.settings.look.ascii:
            filters.append(self._ascii)
        return filters

    def compose(self) -> ComposeResult:
        yield self.header
        yield self.tabs
        yield self.banner
        yield self.panes
        yield self.hints

    async def on_mount(self) -> None:
        self.set_keymap(dict(self.settings.keymap))
        self.run_worker(self.source.follow(self.mirror), group="link")
        await self._arrive(self._here)
        self.set_interval(TICK, self.tick)

    @on(Driver.SignalResume)
    def _resumed(self) -> None:
        """Back from the shell, on an empty screen: Textual would paint only what changes."""
        self.refresh(layout=True)

    @property
    def pane(self) -> Pane:
        """The screen that is seen."""
        return self._visited[self._here.screen]

    # Time passes.

    def tick(self) -> None:
        """Paint what has changed; nothing else happens by itself."""
        link = self.mirror.link
        stale = link.heard is not None and not link.is_fresh(self.mirror.clock.monotonic())
        self.panes.set_class(stale, "-stale")
        if not isinstance(self.screen, Confirm):  # nothing moves while one decides
            self.pane.tick()
        self.show_frame()
        settling = self._settling is not None and not self._settling.is_finished
        if link.word == "live" and self.commands_log.unknown and not settling:
            self._settling = self._settle_unknown()

    def show_frame(self) -> None:
        width = self.size.width
        now, link = self.mirror.clock.monotonic(), self.mirror.link
        dated = (int(now), link.word, link.is_fresh(now), width, self._here, self.pane.standstill)
        if dated != self._dated:  # an age in tenths would keep the line busy for nothing
            self._dated = dated
            self.header.lines = [self._header(width)]
            self.banner.lines = frame.banner(
                self.mirror, self.source.address, self.settings.look, self.pane.age
            )
        tab = "jobs" if self._here.screen == "job" else self._here.screen
        self.tabs.lines = [frame.tabs(self.mirror, tab, width)]
        self.hints.lines = [self._hints(width)]

    def _hints(self, width: int) -> Line:
        if isinstance(self.focused, FilterInput):
            return filter_hints(ascii=self.settings.look.ascii)
        return hints(
            self.pane.keys_context,
            self.settings.keymap,
            width,
            self.size.height,
            self.pane.impossible() | (keys.CHANGING if self.acting.only_looks else set()),
            ascii=self.settings.look.ascii,
        )

    def _header(self, width: int) -> Line:
        return frame.header(
            self.mirror,
            self.source.address,
            self.settings.look,
            width,
            read_only=self.settings.read_only,
            standstill=self.pane.words_for_the_header,
        )

    @work(group="fates", exit_on_error=False)
    async def _settle_unknown(self) -> None:
        await self.acting.settle_unknown()

    # Going places.

    async def _arrive(self, visit: Visit, filter: str = "") -> None:
        self.screen_stack[0].minimize()  # or the keys would be those of a screen that is not seen
        if visit.screen not in self._visited:
            pane = self._visited[visit.screen] = PANES[visit.screen](self.desk)
            await self.panes.mount(pane)
        self._here = visit
        self.panes.current = visit.screen
        pane = self.pane
        if isinstance(pane, JobPane) and visit.job is not None:
            pane.look_at(visit.job, visit.tab)
        elif filter:
            pane.visit(filter)
        if (first := pane.first_focus()) is not None:
            first.focus()
        pane.tick()
        self.show_frame()

    async def _go(self, visit: Visit, filter: str = "") -> None:
        if visit != self._here:
            self._been.append(self._here)
        await self._arrive(visit, filter)

    async def action_show(self, screen: str) -> None:
        await self._go(Visit(screen))

    @on(Pane.Go)
    async def _sent_to(self, event: Pane.Go) -> None:
        tab = event.filter if event.screen == "job" else ""
        filter = "" if event.screen == "job" else event.filter
        await self._go(Visit(event.screen, event.job, tab), filter)

    async def action_previous(self) -> None:
        if self._been:
            await self._arrive(self._been.pop())

    async def action_back(self) -> None:
        if self.screen.maximized is not None and not isinstance(self.focused, FilterInput):
            self.action_unzoom()
        elif not self.pane.step_back():
            await self.action_previous()

    async def action_leave(self) -> None:
        if self._here.screen == "job":
            await self.action_previous()
        else:
            self.exit()

    # Views: filters with names.

    @property
    def filter_in_force(self) -> str:
        """Of the list of jobs, if it is what is seen."""
        return self.pane.bar.text if isinstance(self.pane, JobsPane) else ""

    async def view(self, filter: str) -> None:
        await self._go(Visit("jobs"), filter)

    def save_view(self, name: str, filter: str) -> None:
        self._change_views(lambda: self.settings.views.save(name, filter), f"view {name} saved")

    def forget_view(self, name: str) -> None:
        self._change_views(lambda: self.settings.views.forget(name), f"view {name} forgotten")

    def _change_views(self, change: Callable[[], None], done: str) -> None:
        try:
            change()
        except OSError as problem:
            self.say(f"the views could not be written: {problem}", "error")
        else:
            self.say(done, "information")

    # Acting.

    @on(Pane.Asked)
    def _asked(self, event: Pane.Asked) -> None:
        self._carry_out(event)

    @work(group="acting", exit_on_error=False)
    async def _carry_out(self, asked: Pane.Asked) -> None:
        fate = await self.acting.carry_out(asked.intent)
        if fate is not None:
            asked.pane.settled(asked.intent, fate)

    async def _confirm(self, question: Question) -> Options | None:
        return await self.push_screen_wait(
            Confirm(question, self.settings.look, self.mirror.clock.monotonic)
        )

    @work(group="acting", exit_on_error=False)
    async def action_undo(self) -> None:
        await self.acting.undo()
        self.pane.reread()

    def say(self, text: str, severity: Severity) -> None:
        """A toast, and the same in the log."""
        self.commands_log.note(text, self.mirror.now())
        self.notify(clean(text), severity=severity, markup=False)
        self.call_later(self._make_room)

    def _make_room(self) -> None:
        for old in list(self._notifications)[:-TOASTS]:
            self._unnotify(old)

    @on(Pane.Said)
    def _said(self, event: Pane.Said) -> None:
        self.say(event.text, event.severity)

    @on(Pane.Copied)
    @work(group="copy", exit_on_error=False)
    async def _copy(self, event: Pane.Copied) -> None:
        self.say(await copying.copy(event.text, self.copy_to_clipboard, os.environ), "information")

    # Looking.

    def action_freeze(self) -> None:
        self.pane.freeze()

    def action_reread(self) -> None:
        self.pane.reread()

    def action_zoom(self) -> None:
        if self.screen.focused is not None:
            self.screen.maximize(self.screen.focused)

    def action_unzoom(self) -> None:
        self.screen.minimize()

    def action_command_palette(self) -> None:
        if not isinstance(self.screen, Palette):
            self.push_screen(Palette(id="--command-palette"))

    def action_log(self) -> None:
        self.push_screen(Page("MY COMMANDS", command_lines(self.commands_log, self.settings.look)))

    @work(group="dialog")
    async def action_help(self) -> None:
        key = await self.push_screen_wait(Help(self.pane.keys_context, self.settings.keymap))
        if key is not None:
            self.press(key)

    @on(FilterBar.HelpWanted)
    def _filter_help(self) -> None:
        self.push_screen(Page("HOW TO WRITE A FILTER", list(filter_help())))

    def press(self, key: keys.Key) -> None:
        """Do what a key does, as if it had been pressed."""
        self.simulate_key(self.settings.keymap.get(key.id, key.keys).split(",")[0])

    def _fatal_error(self) -> None:
        """Textual would print pages of its insides here; whoever started us makes a report."""
        self.panic()

    @property
    def fault(self) -> BaseException | None:
        """What the console broke down of."""
        fault = self._exception
        return fault.error if isinstance(fault, WorkerFailed) else fault

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        if event.state is WorkerState.ERROR:
            self.say(fault_of(event), "error")
