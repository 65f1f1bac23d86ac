"""`?`: the keys of this screen, searchable; Enter does what the line says."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Input

from redrive_tui.formatting import Line
from redrive_tui.keys import FIXED, Key, keys_of
from redrive_tui.widgets.lines import Heading
from redrive_tui.widgets.table import Column, RecordTable

FILTER_HELP = """
state:dead,retry queue:mail task:send_*      same key again: or; another key: and
!error:timeout                               not
attempt>3 age>10m duration<5s next<1h        compare
id:12 run:r7 batch:night node:w2 arg.user:42 one thing, an argument
"peer closed"                                text in errors and arguments
sort:-next                                   order; a minus turns it round
""".strip()


def filter_help() -> Iterator[Line]:
    for line in FILTER_HELP.splitlines():
        example, explanation = line[:45], line[45:]
        yield [(example, "accent"), (explanation, "text")]


class Help(ModalScreen[Key | None]):
    """Answers with the key to press, or None."""

    DEFAULT_CSS = """
    Help { align: center middle; background: $background 60%; }
    Help > Vertical {
        width: 90; max-width: 96%; height: 90%;
        background: $surface; padding: 1 2; border: round $rule;
    }
    Help Heading, Help RecordTable { background: $surface; }
    Help Input { border: none; height: 1; padding: 0; margin: 1 0; background: $background; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape", "leave", show=False),
        Binding("down", "to_list", show=False),
        Binding("q,question_mark", "leave", show=False),
    ]

    def __init__(self, screen: str, keymap: Mapping[str, str]) -> None:
        super().__init__()
        self._title = f"KEYS · {screen}"
        self._keymap = keymap
        self._keys = [*keys_of(screen), *FIXED]
        self.table = RecordTable[Key](
            [Column("KEY", 16), Column("WHAT IT DOES", 0), Column("NAME", 22, from_width=80)],
            self._cells,
            lambda key: (key.id, key.keys),
            empty="no key does that",
        )

    def compose(self) -> ComposeResult:
        with Vertical():
            yield Heading(self._title)
            yield Input(placeholder="search")
            yield self.table

    def on_mount(self) -> None:
        self.table.show(self._keys)
        self.query_one(Input).focus()

    def _cells(self, key: Key) -> list[Line]:
        role = "warning" if key.destructive else "text"
        pressed = self._keymap.get(key.id, key.keys).replace(",", "  ")
        return [[(pressed, "key")], [(key.description, role)], [(key.id, "dim")]]

    @on(Input.Changed)
    def _search(self, event: Input.Changed) -> None:
        words = event.value.casefold().split()
        self.table.show(
            [
                key
                for key in self._keys
                if all(
                    word in f"{key.keys} {key.description} {key.id}".casefold() for word in words
                )
            ]
        )

    @on(Input.Submitted)
    @on(RecordTable.Opened)
    def _chosen(self) -> None:
        self.dismiss(self.table.current)

    def action_to_list(self) -> None:
        self.table.focus()

    def action_leave(self) -> None:
        self.dismiss(None)
