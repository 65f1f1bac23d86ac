"""What every screen is made from: it reads the mirror, asks the source, sends wishes up."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import ClassVar, TypeVar, cast

from msgspec import Struct
from textual import on, work
from textual.containers import Vertical
from textual.message import Message
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.worker import Worker, WorkerState

from redrive.errors import RedriveError
from redrive_tui.acting import Intent, Severity
from redrive_tui.command_log import CommandLog
from redrive_tui.formatting import Look, duration, plural
from redrive_tui.mirror import Mirror
from redrive_tui.source import Source
from redrive_tui.widgets.lines import Lines
from redrive_tui.widgets.stream_view import StreamView
from redrive_tui.widgets.table import Table
from redrive_tui.wishes import Fate

Answer = TypeVar("Answer")
REREAD_EVERY = 1.0  # seconds, while events come in
SHARE = 0.1  # of the daemon's time, at most, that reading a costly list again may take


def fault_of(event: Worker.StateChanged) -> str:
    worker = cast("Worker[object]", event.worker)  # pyright: ignore[reportUnknownMemberType]
    return f"a fault in the console itself: {worker.error!r}"


class Desk(Struct, frozen=True, kw_only=True):
    """What a screen works with."""

    source: Source
    mirror: Mirror
    log: CommandLog
    look: Look


class Standstill(Struct, frozen=True, kw_only=True):
    """When a picture was taken that does not change any more."""

    began: float  # monotonic seconds
    at: int
    seq: int


class Pane(Vertical):
    """A screen. It repaints when ticked, and reads again when the daemon has news."""

    context: ClassVar[str]  # its name; and its entry in `keys.SCREENS`

    DEFAULT_CSS = """
    Pane { height: 1fr; padding: 0 1; }
    Pane Table { height: 1fr; }
    Pane .rule { height: 1; color: $rule; }
    """

    class Asked(Message):
        """The operator wants something done."""

        def __init__(self, pane: Pane, intent: Intent) -> None:
            super().__init__()
            self.pane = pane
            self.intent = intent

    class Go(Message):
        """Another screen is to be shown, filtered, or about one job."""

        def __init__(self, screen: str, *, filter: str = "", job: int | None = None) -> None:
            super().__init__()
            self.screen = screen
            self.filter = filter
            self.job = job

    class Said(Message):
        """Something the operator should read."""

        def __init__(self, text: str, severity: Severity = "information") -> None:
            super().__init__()
            self.text = text
            self.severity: Severity = severity

    class Copied(Message):
        """This text is wanted in the clipboard."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    def __init__(self, desk: Desk) -> None:
        super().__init__(id=self.context)
        self.desk = desk
        self.standstill: Standstill | None = None
        self._has_read = False
        self._read_at = 0.0
        self._read_took = 0.0
        self._read_seq = -1
        self._known = (0.0, -1)  # when what is shown was asked for, and up to which event
        self._reading = False
        self._wanted_anew = False  # while it was being read

    # What a screen fills in.

    async def read(self) -> None:
        """Get from the source what the mirror does not hold."""

    def show(self) -> None:
        """Put into the widgets what the mirror holds."""

    def visit(self, filter: str) -> None:
        """The operator comes here, perhaps with a filter."""

    def step_back(self) -> bool:
        """Undo the last narrowing (marks, a filter); False when there is none."""
        return False

    def impossible(self) -> set[str]:
        """The ids of keys that would be refused for what is under the cursor."""
        return set()

    @property
    def keys_context(self) -> str:
        """The entry in `keys.SCREENS` whose keys are live now."""
        return self.context

    def settled(self, intent: Intent, fate: Fate) -> None:
        """Something asked for here was done."""

    # What they all do.

    @property
    def knows(self) -> bool:
        """Whether there is anything to show: before the daemon's first word nothing is claimed."""
        return self._has_read and self.desk.mirror.status is not None

    @property
    def age(self) -> float:
        """Seconds since what is shown was true; with no news since it was read, it still is."""
        mirror = self.desk.mirror
        now = mirror.clock.monotonic()
        unheard = mirror.link.age(now)
        read_at, seq = self._known
        return unheard if seq == mirror.seq else max(unheard, now - read_at)

    def catch_up(self) -> None:
        """Show how things are, as far as they are known."""
        if self.knows:
            self.show()

    def on_mount(self) -> None:
        self.catch_up()
        self.reread()

    def tick(self) -> None:
        """Called a few times a second while this screen is the one that is seen."""
        if self.is_frozen:
            return
        self.catch_up()
        if self._has_news() and not self._reading:
            self.reread()
        for lines in self.query(Lines):
            lines.repaint()

    @property
    def is_frozen(self) -> bool:
        return self.standstill is not None

    def freeze(self) -> None:
        """`u`: what is shown stays as it is; pressed again, it goes on."""
        if self.is_frozen:
            self.standstill = None
            self.reread()
        else:
            self.stand_still()

    def stand_still(self) -> None:
        """The picture is that of now."""
        mirror = self.desk.mirror
        self.standstill = Standstill(
            began=mirror.clock.monotonic(), at=mirror.as_of, seq=mirror.seq
        )

    @property
    def standstill_words(self) -> str:
        """For how long nothing has moved, and how much would have; empty when it does."""
        if self.standstill is None:
            return ""
        mirror = self.desk.mirror
        lasted = duration(mirror.clock.monotonic() - self.standstill.began)
        waiting = plural(mirror.seq - self.standstill.seq, "change")
        return f"frozen {lasted}, {waiting} waiting (u shows)"

    @property
    def words_for_the_header(self) -> str:
        return self.standstill_words

    @property
    def as_of(self) -> int:
        """The instant that ages are told for: nothing grows older in a picture."""
        return self.standstill.at if self.standstill is not None else self.desk.mirror.as_of

    def reread(self) -> None:
        """Read at once; what is being read already may be about something else by now."""
        if self._reading:
            self._wanted_anew = True
            return
        self._reading = True
        self._read_at = self.desk.mirror.clock.monotonic()
        self._read_seq = self.desk.mirror.seq
        self._read_now()

    @work(group="read", exit_on_error=False)
    async def _read_now(self) -> None:
        try:
            if await self.guarded(self.read()):
                self._has_read = True
                self._known = (self._read_at, self._read_seq)
                if self.is_frozen:
                    self.stand_still()  # with what was just read
            else:
                self._read_seq = -1  # whatever there is, it is news
        finally:
            self._reading = False
            self._read_took = self.desk.mirror.clock.monotonic() - self._read_at
        self.catch_up()
        if self._wanted_anew:
            self._wanted_anew = False
            self.reread()

    async def guarded(self, reading: Awaitable[None]) -> bool:
        """Whether it could be read; if not, the operator is told why."""
        try:
            await reading
        except RedriveError as problem:
            self.failed(problem)
            return False
        return True

    def failed(self, problem: RedriveError) -> None:
        # While the link is down every reading fails, and the header says so already.
        if self.desk.mirror.link.word == "live":
            self.post_message(self.Said(str(problem), "error"))

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault in the console's own work is told, never swallowed."""
        if event.state is WorkerState.ERROR:
            self.post_message(self.Said(fault_of(event), "error"))

    @on(StreamView.Missed)
    def _missed(self, event: StreamView.Missed) -> None:
        self.post_message(self.Said(event.what, "warning"))

    def _has_news(self) -> bool:
        return self._is_due() and self.desk.mirror.seq != self._read_seq

    def _is_due(self) -> bool:
        mirror = self.desk.mirror
        waited = mirror.clock.monotonic() - self._read_at
        return waited >= max(REREAD_EVERY, self._read_took / SHARE) and mirror.link.word == "live"

    async def answer_to(self, dialog: ModalScreen[Answer]) -> Answer:
        """Show a dialog and wait for what it answers; for workers."""
        return await self.app.push_screen_wait(dialog)  # pyright: ignore[reportUnknownMemberType]

    def ask(self, intent: Intent, table: Table | None = None) -> None:
        """Send a wish up, unless the cursor, of this table, has just lost what it was on."""
        table = table or self.meant_table()
        if table is not None and table.lost is not None:
            text = (
                f"{table.lost} is no longer in this list; press again for the row under the cursor"
            )
            table.lost = None
            self.post_message(self.Said(text, "warning"))
            return
        self.post_message(self.Asked(self, intent))

    def meant_table(self) -> Table | None:
        focused = self.screen.focused
        return focused if isinstance(focused, Table) else None

    def first_focus(self) -> Widget | None:
        """What gets the keyboard when the screen is shown."""
        return next(iter(self.query(Table)), None)
