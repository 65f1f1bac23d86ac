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
from textual.containers import Horizontal, VerticalScroll
from textual.content import Content
from textual.screen import ModalScreen
from textual.widgets import Button, Input

from redrive.protocol.queries import PreviewReply
from redrive_tui.acting import Question
from redrive_tui.formatting import Line, Look, count, fit, plural, word_of
from redrive_tui.job_cells import error_words
from redrive_tui.sanitize import clean
from redrive_tui.verbs import VERBS, Rung
from redrive_tui.widgets.lines import Panel
from redrive_tui.wishes import Matching, Options, command_line

DEAF_SECONDS = 0.25


class Confirm(ModalScreen[Options | None]):
    """Answers with the options to go on with, or None."""

    DEFAULT_CSS = """
    Confirm { align: center middle; background: $background 60%; }
    Confirm > VerticalScroll {
        width: 92; max-width: 96%; height: auto; max-height: 96%;
        background: $surface; padding: 1 2; border: round $rule;
    }
    Confirm Panel { background: $surface; margin-bottom: 1; }
    Confirm .field { height: 1; margin-bottom: 1; }
    Confirm .field Panel { width: 22; margin: 0; }
    Confirm Input { border: none; height: 1; width: 1fr; padding: 0 1; background: $background; }
    Confirm #buttons { height: 1; align-horizontal: right; }
    Confirm Button { margin-left: 3; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "keep", "keep", show=False),
        Binding("y", "go_on", "go on", show=False),
    ]

    def __init__(self, question: Question, look: Look, monotonic: Callable[[], float]) -> None:
        super().__init__()
        self.question = question
        self._look = look
        self._monotonic = monotonic
        self._opened_at = 0.0
        self._twin = Panel([[]])

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Panel(self._told(), wraps=False)
            if self._by_number:
                if self._is_redrive:
                    yield from self._field(
                        "speed", "pace", "50/min", "jobs per minute; empty: at once"
                    )
                    yield from self._field(
                        "canary first", "canary", "1", "how many have to succeed"
                    )
                yield from self._field("reason", "reason", "", "for whoever reads the history")
                yield from self._field(f"type {self._number} to go on", "number", "", "")
            yield self._twin
            with Horizontal(id="buttons"):
                yield Button("keep (esc)", id="keep", compact=True)
                yield Button(
                    Content(clean(self._deed)), id="go", compact=True, disabled=self._by_number
                )

    def _field(self, label: str, id: str, value: str, hint: str) -> ComposeResult:
        with Horizontal(classes="field"):
            yield Panel([[(label, "title")]])
            yield Input(value, placeholder=hint, id=id)

    def on_mount(self) -> None:
        self._opened_at = self._monotonic()
        self.call_after_refresh(self._show_twin)
        self.query_one("#number" if self._by_number else "#keep").focus()

    @property
    def _by_number(self) -> bool:
        return self.question.rung is Rung.TYPE_THE_NUMBER

    @property
    def _is_redrive(self) -> bool:
        return self.question.wish.verb == "requeue"

    @property
    def _number(self) -> int:
        return self.question.number

    @property
    def _deed(self) -> str:
        """What the button does: `kill 3 jobs`."""
        verb = VERBS[self.question.wish.verb]
        if verb.of == "job" and self._number != 1:
            return f"{verb.label} {plural(self._number, 'job')}"
        return f"{verb.label} {self.question.wish.selection.words}"

    def _told(self) -> list[Line]:
        question, welcome = self.question, self.question.welcome
        environment = clean(welcome.environment or welcome.node, 24)
        lines: list[Line] = [
            [
                (f" {environment} ", f"environment:{welcome.colour or 'blue'}"),
                (f"  {clean(self._deed)}", "strong"),
                (f"  as of {self._look.time(question.at)}", "dim"),
            ],
            [],
        ]
        selection = question.wish.selection
        if isinstance(selection, Matching):
            matched = clean(selection.where) or "everything"
            lines.append(
                [
                    ("matched by  ", "title"),
                    (matched, "text"),
                    ("  later arrivals are not meant", "dim"),
                ]
            )
        if question.preview is not None:
            lines += self._previewed(question.preview)
        for why, number in question.despite.items():
            lines.append([(f"{count(number):>8}  by force: {clean(why)}", "warning")])
        if question.intent.hidden:
            lines.append([(f"{count(question.intent.hidden):>8}  hidden by the filter", "warning")])
        return lines

    def _previewed(self, preview: PreviewReply) -> list[Line]:
        """How many in which state, who is left out and why, and a few to look at."""
        lines: list[Line] = [
            [(f"{count(number):>8}  ", "strong"), self._look.state(word_of(state))]
            for state, number in preview.by_state.items()
        ]
        for why, number in preview.excluded.items():
            lines.append([(f"{count(number):>8}  left out: {clean(why)}", "dim")])
        jobs = preview.sample[:5]
        digits = max((len(str(job.id)) for job in jobs), default=0)
        sample = [(f"{job.id:>{digits}}  {clean(job.task, 40)}", job.error) for job in jobs]
        named = max((cell_len(name) for name, _ in sample), default=0)
        for place, (name, error) in enumerate(sample):
            line: Line = [
                (f"{'' if place else 'e.g.':>8}  ", "text"),
                *fit([(name, "text")], named),
            ]
            lines.append([*line, (f"  {error_words(error)}" if error else "", "dim")])
        return lines

    @on(Input.Changed)
    def _show_twin(self) -> None:
        wish = replace(self.question.wish, options=self._options())
        room = max(20, self._twin.size.width - 10)
        parts = textwrap.wrap(clean(command_line(wish)), room, break_on_hyphens=False) or [""]
        labels = ["same as", *[""] * (len(parts) - 1)]
        self._twin.lines = [
            [(f"{label:<9}", "title"), (part, "accent")]
            for label, part in zip(labels, parts, strict=True)
        ]
        if self._by_number:
            typed = self.query_one("#number", Input).value.strip()
            self.query_one("#go", Button).disabled = typed.replace(",", "") != str(self._number)

    def _options(self) -> Options:
        options = self.question.wish.options
        if not self._by_number:
            return options
        options = replace(options, reason=self.query_one("#reason", Input).value.strip())
        if not self._is_redrive:
            return options
        canary = self.query_one("#canary", Input).value.strip()
        pace = self.query_one("#pace", Input).value.strip()
        return replace(options, canary=int(canary) if canary.isdecimal() else 0, pace=pace)

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
