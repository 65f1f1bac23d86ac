"""What can be copied of a job, and the way to a clipboard that works here.

A terminal's own way (OSC 52) is the only one that crosses SSH, but many terminals ignore it
and none says so. So the order is: over SSH that; at home the desktop's own command; and when
there is neither, a file whose path is shown. The operator is told which it was.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable, Mapping

import msgspec

from redrive.models import Job

OSC_52_LIMIT = 74_000  # bytes of text; terminals drop what is longer
COMMANDS = (
    ("WAYLAND_DISPLAY", ("wl-copy",)),
    ("DISPLAY", ("xclip", "-selection", "clipboard")),
    ("DISPLAY", ("xsel", "--clipboard", "--input")),
)


def copyable(job: Job) -> dict[str, str]:
    """The parts of a job one wants elsewhere, by what they are called."""
    parts = {
        "id": str(job.id),
        "arguments (JSON)": msgspec.json.encode(job.args).decode(),
        "command that shows it": f"redrive show {job.id}",
        "command that requeues it": f"redrive requeue {job.id}",
    }
    if job.error is not None:
        parts["error"] = f"{job.error.error_type}: {job.error.message}"
        if job.error.traceback:
            parts["traceback"] = job.error.traceback
    return parts


async def copy(text: str, osc_52: Callable[[str], None], environ: Mapping[str, str]) -> str:
    """Copy, and say how: `copied through the terminal`."""
    data = text.encode("utf-8", "replace")
    remote = "SSH_CONNECTION" in environ or "SSH_TTY" in environ
    command = None if remote else _command(environ)
    if command is not None and await _fed(command, data):
        return f"copied with {command[0]}"
    if len(data) <= OSC_52_LIMIT:
        osc_52(text)
        return "copied through the terminal (if it allows that)"
    return f"too long for the terminal: written to {_written(data)}"


def _command(environ: Mapping[str, str]) -> tuple[str, ...] | None:
    return next(
        (words for needs, words in COMMANDS if needs in environ and shutil.which(words[0])), None
    )


async def _fed(command: tuple[str, ...], data: bytes) -> bool:
    """Whether a command took the text; it may stay to serve it, so nobody waits for its end."""
    process = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        await asyncio.wait_for(process.communicate(data), timeout=2)
    except TimeoutError:
        return True
    return process.returncode == 0


def _written(data: bytes) -> str:
    handle, path = tempfile.mkstemp(prefix="redrive-", suffix=".txt")
    with os.fdopen(handle, "wb") as file:
        file.write(data)
    return path
