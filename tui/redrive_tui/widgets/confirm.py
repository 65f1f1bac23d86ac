"""The dialog that asks back: what would happen, to how many, where, and as a command.

The way out is the default. What does something is named by what it does, never "OK", and
does not listen for the first quarter of a second, so that a key held down cannot press it.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from typing import ClassVar

from msgspec.structs import replace
from rich.cells import cell_len
from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from redrive.config.values import parse_rate
from redrive.protocol.rehearsals import PreviewReply
from redrive_tui.acting import Question
from redrive_tui.formatting import Line, Look, count, fit, plural, word_of
from redrive_tui.job_cells import error_words
from redrive_tui.sanitize import clean
from redrive_tui.verbs import VERBS, Rung
from redrive_tui.widgets.lines import Panel, TextView
from redrive_tui.wishes import Ids, Matching, Options, command_line, parse_share

DEAF_SECONDS = 0.25


class Confirm(ModalScreen[Options | None]):
    """Answers with the options to go on with, or None."""

    DEFAULT_CSS = """
    Confirm { align: center middle; background: $background 60%; }
    Confirm > Vertical {
        width: 92; max-width: 96%; height: auto;
        background: $surface; padding: 0 1; border: round $rule;
    }
    Confirm TextView { background: $surface; }
    Confirm #told { height: auto; }
    Confirm .field { height: 1; }
    Confirm .field Panel { height: 1; }
    Confirm Input { border: none; height: 1; width: 1fr; padding: 0 1; background: $background; }
    Confirm .field .short { width: 10; margin-right: 2; }
    Confirm #buttons { height: 1; }
    Confirm #more { width: 1fr; }
    Confirm Button { margin-left: 2; }
    Confirm.-tall > Vertical { padding: 1 2; }
    Confirm.-tall #told, Confirm.-tall .field, Confirm.-tall #twin { margin-bottom: 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "keep", "keep", show=False),
        Binding("y", "go_on", "go on", show=False),
        Binding("up,left", "app.focus_previous", show=False),
        Binding("down,right", "app.focus_next", show=False),
        Binding("pagedown", "page(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
    ]

    def __init__(self, question: Question, look: Look, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self.question = question
        self._look = look
        self._monotonic = monotonic
        self._opened_at = 0.0
        self._told = TextView(id="told")
        self._told.can_focus = False
        self._twin = Panel([[]], id="twin")
        self._more = Panel([[]], id="more")

    def compose(self) -> ComposeResult:
        with Vertical():
            yield self._told
            if self._by_number:
                yield from self._fields()
            yield self._twin
            with Horizontal(id="buttons"):
                yield self._more
                yield Button("keep (esc)", id="keep", compact=True)
                yield Button(
                    Content(clean(self._deed)), id="go", compact=True, disabled=self._by_number
                )

    def _fields(self) -> ComposeResult:
        if self._is_redrive:
            with Horizontal(classes="field"):
                yield self._label("speed")
                yield Input("50/min", placeholder="at once", id="pace", classes="short")
                yield self._label("canary")
                yield Input("1", placeholder="none", id="canary", classes="short")
                yield self._label("stop at")
                yield Input(placeholder="never", id="stop_at")
        with Horizontal(classes="field"):
            yield self._label("reason")
            yield Input(placeholder="for whoever reads the history", id="reason")
        with Horizontal(classes="field"):
            yield self._label(f"type {self._number} to go on")
            yield Input(id="number")

    def _label(self, text: str) -> Panel:
        label = Panel([[(text, "title")]])
        label.styles.width = cell_len(text) + 1
        return label

    def on_mount(self) -> None:
        self._opened_at = self._monotonic()
        self.call_after_refresh(self._show_twin)
        self.query_one("#number" if self._by_number else "#keep").focus()

    def on_resize(self) -> None:
        self.call_after_refresh(self._lay_out)

    def _lay_out(self) -> None:
        """What is told gives way to what is asked; `pgdn` shows the rest of it."""
        frame = self._told.parent
        assert isinstance(frame, Vertical)
        self._told.lines = self._lines(self._told.size.width - self._told.bar_width)
        others = sum(
            child.outer_size.height + child.styles.margin.height
            for child in frame.children
            if child is not self._told
        )
        margin = self._told.styles.margin.height
        room = max(2, self.size.height - others - margin - frame.gutter.height)
        self._told.styles.max_height = room
        told = len(self._told.wrapped_to(self._told.size.width - self._told.bar_width))
        self._more.lines = [[("pgdn: more", "dim")] if told > room else []]

    @property
    def _by_number(self) -> bool:
        return self.question.rung is Rung.TYPE_THE_NUMBER

    @property
    def _is_redrive(self) -> bool:
        """A set of jobs is worked off in the background; a run goes on by itself."""
        preview = self.question.preview
        return self.question.wish.verb == "requeue" and not (preview and preview.runs)

    @property
    def _number(self) -> int:
        return self.question.number

    @property
    def _is_about_one(self) -> bool:
        wish = self.question.wish
        alone = isinstance(wish.selection, Ids) and wish.selection.number == 1
        return alone or VERBS[wish.verb].of != "job"

    @property
    def _deed(self) -> str:
        """What the button does: `kill 3 jobs`."""
        wish = self.question.wish
        whom = wish.selection.words if self._is_about_one else plural(self._number, "job")
        return f"{VERBS[wish.verb].label} {whom}"

    def _lines(self, width: int) -> list[Line]:
        question, welcome = self.question, self.question.welcome
        environment = clean(welcome.environment or welcome.node, 24)
        preview = question.preview
        of_all = ""
        if preview is not None and not self._is_about_one and preview.total > preview.fits:
            of_all = f" of {count(preview.total)}"
        lines: list[Line] = [
            [
                (f" {environment} ", f"environment:{welcome.colour or 'blue'}"),
                (f"  {clean(self._deed)}{of_all}", "strong"),
            ],
            [(f"as of {self._look.time(question.at)}", "dim")],
        ]
        selection = question.wish.selection
        if isinstance(selection, Matching):
            lines[-1].append((", what arrives later is not meant", "dim"))
            matched = clean(selection.where) or "everything"
            lines.append([("matched by  ", "title"), (matched, "text")])
        if preview is not None:
            lines += self._previewed(preview, width)
        label = "by force" if question.wish.options.force else "in spite of that"
        for why, number in question.despite.items():
            lines.append([(f"{count(number):>8}  ", "warning"), (f"{label}: {why}", "warning")])
        if question.intent.hidden:
            lines.append([(f"{count(question.intent.hidden):>8}  hidden by the filter", "warning")])
        return lines

    def _previewed(self, preview: PreviewReply, width: int) -> list[Line]:
        """How many in which state, who is left out and why, and a few to look at."""
        lines: list[Line] = [
            [(f"{count(number):>8}  ", "strong"), self._look.state(word_of(state))]
            for state, number in preview.by_state.items()
        ]
        for why, number in preview.excluded.items():
            lines.append([(f"{count(number):>8}  ", "dim"), (f"left out: {clean(why)}", "dim")])
        for run in preview.runs:
            steps = ", ".join(run.steps)
            lines += [[(f"{'steps':>8}  ", "title"), (clean(steps), "text")]] if steps else []
        jobs = preview.sample[:5]
        digits = max((len(str(job.id)) for job in jobs), default=0)
        sample = [(f"{job.id:>{digits}}  {clean(job.task, 40)}", job.error) for job in jobs]
        named = max((cell_len(name) for name, _ in sample), default=0)
        for place, (name, error) in enumerate(sample):
            line: Line = [
                (f"{'' if place else 'e.g.':>8}  ", "text"),
                *fit([(name, "text")], named),
                (f"  {error_words(error)}" if error else "", "dim"),
            ]
            lines.append(fit(line, width))
        return lines

    @on(Input.Changed)
    def _show_twin(self) -> None:
        problem = self._problem()
        wish = replace(self.question.wish, options=self._options())
        room = max(20, self._twin.size.width - 10)
        text = problem or clean(command_line(wish))
        parts = textwrap.wrap(text, room, break_on_hyphens=False) or [""]
        labels = ["not yet" if problem else "same as", *[""] * (len(parts) - 1)]
        self._twin.lines = [
            [(f"{label:<9}", "title"), (part, "warning" if problem else "accent")]
            for label, part in zip(labels, parts, strict=True)
        ]
        if self._by_number:
            wrong = self._typed("number").replace(",", "") != str(self._number)
            self.query_one("#go", Button).disabled = wrong or bool(problem)
        self.call_after_refresh(self._lay_out)

    def _typed(self, field: str) -> str:
        return self.query_one(f"#{field}", Input).value.strip()

    def _problem(self) -> str:
        """What was typed that cannot be meant."""
        if not (self._by_number and self._is_redrive):
            return ""
        pace, canary = self._typed("pace"), self._typed("canary")
        try:
            if pace:
                parse_rate(pace)
        except ValueError as problem:
            return f"speed: {clean(str(problem))}"
        if canary and not canary.isdecimal():
            return f"canary: {clean(canary)} is no number of jobs such as 1"
        if parse_share(self._typed("stop_at")) is None:
            return f"stop at: {clean(self._typed('stop_at'))} is no share of failures such as 20%"
        return ""

    def _options(self) -> Options:
        options = self.question.wish.options
        if not self._by_number:
            return options
        options = replace(options, reason=self._typed("reason"))
        if not self._is_redrive:
            return options
        canary = self._typed("canary")
        return replace(
            options,
            canary=int(canary) if canary.isdecimal() else 0,
            pace=self._typed("pace"),
            stop_at=parse_share(self._typed("stop_at")) or 0.0,
        )

    def action_page(self, pages: float) -> None:
        self._told.action_page(pages)

    @on(Input.Submitted)
    def _submitted(self) -> None:
        self._go_on()

    @on(Button.Pressed, "#go")
    def _go_on(self) -> None:
        deaf = self._monotonic() - self._opened_at < DEAF_SECONDS
        if not deaf and not self.query_one("#go", Button).disabled:
            self.dismiss(self._options())

    @on(Button.Pressed, "#keep")
    def action_keep(self) -> None:
        self.dismiss(None)

    def action_go_on(self) -> None:
        if not self._by_number:
            self._go_on()
