"""The pictures in docs/: the console on the demo, after it has run for a while.

`make pictures` renews them. They show whatever the demo did this time, so nothing compares them;
what the console looks like is held by the snapshots of its tests.
"""

from __future__ import annotations

import asyncio
import re
import sys
import tempfile
from html import unescape
from pathlib import Path

from rich.cells import cell_len
from textual.pilot import Pilot

from redrive.config import load_client
from redrive.demo import service, workload
from redrive.lifecycle import RETRY
from redrive_tui.app import Console, Settings
from redrive_tui.link import Link
from redrive_tui.screens.job import JobPane
from redrive_tui.screens.jobs import JobsPane
from support.daemon import Daemon

FOLDER = Path(__file__).parents[2] / "docs" / "pictures"
MINUTES = 5.5  # until the five minutes that the overview draws are full
SETTLING = 1.5  # seconds
REMOTE_FONTS = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
FONTS = 'font-family: ui-monospace, "DejaVu Sans Mono", Menlo, Consolas, monospace'
CELL = 12.2  # the width of one, as Rich draws it
SIZE = "font-size: 20.3px"  # of a font whose letters are that wide
TEXT = re.compile(r'<text(.*?) x="([\d.]+)" (y="[\d.]+") textLength="[\d.]+"(.*?)>(.*?)</text>')
SPACES = re.compile(r"((?:&#160;){2,}|^&#160;)")


class Filmed(Link):
    """A link whose picture does not show where the demo was thrown away."""

    address = "ipc:///run/redrive/query"


class Photographer:
    def __init__(self, pilot: Pilot[None]) -> None:
        self.pilot = pilot
        self.console: Console = pilot.app  # type: ignore[assignment]

    async def settle(self) -> None:
        await self.pilot.pause(SETTLING)
        self.console.clear_notifications()
        await self.pilot.pause(0.2)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def filter(self, text: str) -> None:
        await self.pilot.press("2")
        await self.settle()
        assert isinstance(self.console.pane, JobsPane)
        self.console.pane.visit(text)
        await self.settle()

    async def take(self, name: str, size: tuple[int, int]) -> None:
        await self.pilot.resize_terminal(*size)
        await self.settle()
        drawn = self.console.export_screenshot(title="redrive")
        (FOLDER / f"{name}.svg").write_text(self_contained(drawn))
        print(f"  {name}.svg", flush=True)

    async def open_retrying(self) -> None:
        """A job with attempts behind it and one to come, in a while."""
        while not self._is_between_attempts():
            await self.filter("state:retry attempt>1 next>5s")
            await self.press("ctrl+r", "enter")

    def _is_between_attempts(self) -> bool:
        pane = self.console.pane
        job = pane.current_job if isinstance(pane, JobPane) else None
        return job is not None and job.state is RETRY


def self_contained(drawn: str) -> str:
    """Without fonts from elsewhere, and each word in its place whatever font there is."""
    drawn = REMOTE_FONTS.sub("", drawn).replace("font-family: Fira Code, monospace", FONTS)
    drawn = TEXT.sub(placed, drawn.replace("font-size: 20px", SIZE))
    return "\n".join(line.rstrip() for line in drawn.splitlines() if line.strip()) + "\n"


def placed(found: re.Match[str]) -> str:
    """A text cut at its wide gaps, each part where it belongs."""
    look, left, y, clip, text = found.groups()
    x, parts = float(left), list[str]()
    for piece in SPACES.split(text):
        width = CELL * cell_len(unescape(piece))
        if piece.replace("&#160;", ""):
            where = f'x="{x:g}" {y} textLength="{width:g}"'
            parts.append(f"<text{look} {where}{clip}>{piece}</text>")
        x += width
    return "".join(parts)


async def take_all(photographer: Photographer) -> None:
    await photographer.press("1")
    await photographer.take("overview", (120, 24))
    await photographer.filter("")
    await photographer.press("g", "space", "down", "space")
    await photographer.take("jobs", (120, 30))
    await photographer.press("U")
    await photographer.open_retrying()
    await photographer.take("job", (120, 26))
    await photographer.press("3")
    await photographer.take("dead", (120, 26))
    await photographer.press("r")
    await photographer.take("redrive", (120, 30))
    await photographer.press("escape", "4")
    await photographer.take("runs", (120, 30))
    await photographer.filter("")
    await photographer.press("g")
    await photographer.take("narrow", (62, 20))


async def film(config: str, minutes: float) -> None:
    link = Filmed(config)
    try:
        async with Console(link, Settings()).run_test(size=(120, 30)) as pilot:
            photographer = Photographer(pilot)
            await pilot.pause(minutes * 60)
            await take_all(photographer)
    finally:
        await link.close()


def main() -> None:
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else MINUTES
    FOLDER.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="redrive-") as name, service.running() as address:
        daemon = Daemon(Path(name), "", workload.config_text(address))
        daemon.start()
        try:
            with workload.running(load_client(daemon.config).config, address):
                print(f"filming the demo for {minutes:g} minutes", flush=True)
                asyncio.run(film(str(daemon.config), minutes))
        finally:
            daemon.stop()


if __name__ == "__main__":
    main()
