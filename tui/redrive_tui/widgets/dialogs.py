"""Small modal things: a page to read, a choice to make."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input, OptionList
from textual.widgets.option_list import Option

from redrive_tui.formatting import Line
from redrive_tui.sanitize import clean
from redrive_tui.widgets.lines import Heading, TextView


class Page(ModalScreen[None]):
    """Something to read; any of the usual keys closes it."""

    DEFAULT_CSS = """
    Page { align: center middle; background: $background 60%; }
    Page Vertical {
        width: 90%; max-width: 110; height: auto; max-height: 85%;
        background: $surface; padding: 1 2; border: round $rule;
    }
    Page TextView { height: auto; max-height: 100%; background: $surface; margin-top: 1; }
    Page Heading { background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,enter,x,o", "dismiss", "close", show=False),
    ]

    def __init__(self, title: str, lines: list[Line]) -> None:
        super().__init__()
        self._title = title
        self._lines = lines

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Heading(self._title)
            yield TextView(self._lines)


class Choice(ModalScreen[str | None]):
    """One of a few named values; None when it was left."""

    DEFAULT_CSS = """
    Choice { align: center middle; background: $background 60%; }
    Choice Vertical {
        width: 60; max-width: 95%; height: auto; max-height: 80%;
        background: $surface; padding: 1 2; border: round $rule;
    }
    Choice Heading { background: $surface; margin-bottom: 1; }
    Choice OptionList, Choice OptionList:focus {
        height: auto; border: none; background: $surface; padding: 0;
    }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q", "leave", "leave", show=False),
        Binding("j", "app.simulate_key('down')", show=False),
        Binding("k", "app.simulate_key('up')", show=False),
    ]

    def __init__(self, title: str, values: Mapping[str, str]) -> None:
        super().__init__()
        self._title = title
        self._values = values

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Heading(self._title)
            yield OptionList(*(Option(clean(label, 80)) for label in self._values), markup=False)

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(list(self._values.values())[event.option_index])

    def action_leave(self) -> None:
        self.dismiss(None)


class Prompt(ModalScreen[str | None]):
    """One line to type."""

    DEFAULT_CSS = """
    Prompt { align: center bottom; background: $background 30%; }
    Prompt Vertical { width: 100%; height: 2; background: $surface; padding: 0 1; }
    Prompt Heading { background: $surface; }
    Prompt Input { border: none; height: 1; padding: 0; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "leave", "leave", show=False)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title = title
        self._value = value

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Heading(self._title)
            yield Input(self._value)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)

    def action_leave(self) -> None:
        self.dismiss(None)
