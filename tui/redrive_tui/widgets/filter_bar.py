"""The line where a filter is typed: tried on Enter and after a short rest, with completion."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.message import Message
from textual.timer import Timer
from textual.widgets import Input

from redrive.filters import Completion, FilterProblem, complete, parse
from redrive_tui.formatting import Line, count
from redrive_tui.sanitize import clean
from redrive_tui.widgets.lines import Panel

REST = 0.2  # seconds without a key before a filter is tried
SHOWN = 12  # candidates
EARLIER = 100  # filters that the arrows bring back
_KEY = re.compile(r"([\w.]+):[^\s:]*$")  # whose value is being typed


class FilterInput(Input):
    """Leaves `?` to whoever explains filters; within quotes it is a letter like any other."""

    def check_consume_key(self, key: str, character: str | None) -> bool:
        asks = character == "?" and self.value.count('"') % 2 == 0
        return not asks and super().check_consume_key(key, character)


class FilterBar(Vertical):
    """An input, what it could go on with, and what was wrong with it."""

    DEFAULT_CSS = """
    FilterBar { height: auto; display: none; background: $surface; }
    FilterBar.-open { display: block; }
    FilterBar Input { border: none; padding: 0 1; height: 1; background: $surface; }
    FilterBar Panel { padding: 0 1; background: $surface; }
    """

    # With priority a key overtakes those before it, which the input has not taken in yet.
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("tab", "complete", show=False),
        Binding("question_mark", "help", show=False, priority=True),
        Binding("up", "recall(-1)", show=False),
        Binding("down", "recall(1)", show=False),
    ]

    class Applied(Message):
        """This filter is to be used; it can be understood."""

        def __init__(self, text: str) -> None:
            super().__init__()
            self.text = text

    class Left(Message):
        """The keyboard goes back to the list."""

    class HelpWanted(Message):
        """`?` was typed: how does one write a filter?"""

    def __init__(self, *, id: str | None = None) -> None:
        super().__init__(id=id)
        self.text = ""  # what is in force
        self.known: Mapping[str, Mapping[str, int | None]] = {}  # values, and how many have them
        self._earlier: deque[str] = deque(maxlen=EARLIER)
        self._place = 0
        self._rest: Timer | None = None

    def compose(self) -> ComposeResult:
        yield FilterInput(select_on_focus=False)
        yield Panel([[]])

    def open(self) -> None:
        self.add_class("-open")
        field = self.query_one(Input)
        field.value = clean(self.text)
        field.cursor_position = len(field.value)
        field.focus()
        self._suggest()

    def close(self) -> None:
        self.remove_class("-open")
        self.post_message(self.Left())

    @property
    def is_open(self) -> bool:
        return self.has_class("-open")

    def apply(self, text: str) -> bool:
        """Use this filter; False when it cannot be understood, and says so."""
        try:
            parse(text)
        except FilterProblem as problem:
            picture = problem.picture.splitlines()[1:]
            self.query_one(Panel).lines = [[(clean(line), "error")] for line in picture]
            return False
        self.text = text
        self.post_message(self.Applied(text))
        return True

    def completion(self) -> Completion:
        field = self.query_one(Input)
        return complete(field.value, field.cursor_position, self.known)

    def _suggest(self) -> None:
        line: Line = []
        completion = self.completion()
        key = _KEY.search(self.query_one(Input).value[: completion.start])
        numbers: Mapping[str, int | None] = self.known.get(key[1], {}) if key else {}
        for candidate in completion.candidates[:SHOWN]:
            number = numbers.get(candidate.strip('"'))
            line.append((clean(candidate, 40), "accent"))
            line.append((f" {count(number)}   " if number is not None else "  ", "dim"))
        self.query_one(Panel).lines = [line]

    def on_input_changed(self, event: Input.Changed) -> None:
        event.stop()
        self._suggest()
        if self._rest is not None:
            self._rest.stop()
        self._rest = self.set_timer(REST, self._try)

    def _try(self) -> None:
        """After a rest: use it if it makes sense already; what is half typed is no mistake yet."""
        field, completion = self.query_one(Input), self.completion()
        text = field.value.strip()
        if completion.candidates and completion.start < field.cursor_position:
            return  # `sta` is on its way to `state:`, and not a text to look for
        if self.is_open and text != self.text and _understood(text):
            self.apply(text)

    def action_help(self) -> None:
        self.post_message(self.HelpWanted())

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        text = event.value.strip()
        if not self.apply(text):
            return
        if text and text not in self._earlier:
            self._earlier.append(text)
        self._place = len(self._earlier)
        self.close()

    def action_complete(self) -> None:
        completion = self.completion()
        if completion.candidates:
            field = self.query_one(Input)
            field.replace(completion.candidates[0], completion.start, field.cursor_position)

    def action_recall(self, step: int) -> None:
        if self._earlier:
            self._place = max(0, min(len(self._earlier) - 1, self._place + step))
            field = self.query_one(Input)
            field.value = self._earlier[self._place]
            field.cursor_position = len(field.value)


def _understood(text: str) -> bool:
    try:
        parse(text)
    except FilterProblem:
        return False
    return True
