"""How the console looks: a picture per screen and state, to be looked at when it changes.

The rest is tested as text, which survives a new Textual; pictures are few on purpose.
Renew them with `pytest tests/tui/test_snapshots.py --snapshot-update`.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from textual.pilot import Pilot
from textual.widgets import Input

from redrive_tui.app import Console, Settings
from support import incident
from support.clock import FakeClock
from support.recorded import Recorded
from support.stage import Stage

Compare = Callable[..., bool]
WIDE, STANDARD, SMALL = (120, 30), (80, 24), (60, 16)


@pytest.fixture(autouse=True)
def _colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)


def nothing() -> Recorded:
    return Recorded(incident.status(states={}, queues=[], attention=[], due=[]), incident.welcome())


def looks(
    compare: Compare,
    keys: str = "",
    *,
    size: tuple[int, int] = WIDE,
    theme: str = "dark",
    source: Recorded | None = None,
    lost: bool = False,
) -> bool:
    clock = FakeClock()
    console = Console(source or incident.source(), Settings(theme=theme), clock)

    async def play(pilot: Pilot[None]) -> None:
        stage = Stage(console, pilot, clock)
        await stage.settle()
        await stage.press(*keys.split())
        for field in console.screen.query(Input):
            field.cursor_blink = False
        if lost:
            console.mirror.relink("lost", retries=3, detail="nobody listens there")
            clock.move(12)
        await stage.settle()

    return compare(console, terminal_size=size, run_before=play)


SCREENS = {
    "overview": "",
    "jobs": "2 space space",
    "dead": "3",
    "runs": "4 down",
    "batches": "4 ]",
    "queues": "5 down down",
    "schedules": "6",
    "nodes": "7",
    "events": "8",
    "job": "2 enter",
    "error": "2 enter ] ] ]",
    "output": "2 l",
    "redrive": "3 r",
    "help": "2 question_mark",
}


@pytest.mark.parametrize("keys", SCREENS.values(), ids=SCREENS.keys())
def test_screen(snap_compare: Compare, keys: str) -> None:
    assert looks(snap_compare, keys)


@pytest.mark.parametrize("keys", ["", "2"], ids=["overview", "jobs"])
def test_empty(snap_compare: Compare, keys: str) -> None:
    assert looks(snap_compare, keys, source=nothing())


def test_disconnected(snap_compare: Compare) -> None:
    assert looks(snap_compare, lost=True)


@pytest.mark.parametrize("keys", ["", "2 enter"], ids=["overview", "job"])
def test_standard_terminal(snap_compare: Compare, keys: str) -> None:
    assert looks(snap_compare, keys, size=STANDARD)


@pytest.mark.parametrize("keys", ["2", "3 r"], ids=["jobs", "redrive"])
def test_small_terminal(snap_compare: Compare, keys: str) -> None:
    assert looks(snap_compare, keys, size=SMALL)


@pytest.mark.parametrize("theme", ["light", "high-contrast", "colour-blind", "mono"])
def test_theme(snap_compare: Compare, theme: str) -> None:
    assert looks(snap_compare, "2", theme=theme, size=STANDARD)
