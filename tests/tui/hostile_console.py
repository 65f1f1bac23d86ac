"""A console over hostile records, as a program of its own: for a test with a real terminal."""

from __future__ import annotations

import asyncio

from redrive_tui.app import Console
from redrive_tui.terminal import show
from support import hostile

if __name__ == "__main__":
    asyncio.run(show(Console(hostile.source())))
