"""The token of `[http] token_file`: long enough, and nobody else's to read."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from redrive.errors import ConfigProblem

SHORTEST = 16  # characters


def read_token(file: str) -> bytes:
    """ConfigProblem says what is wrong with it; its cause is why the file cannot be read."""
    try:
        mode = os.stat(file).st_mode
        content = Path(file).read_bytes().strip()
    except OSError as error:
        raise ConfigProblem(
            f"{file} cannot be read: {error.strerror}",
            hint=f"`umask 077; openssl rand -hex 32 > {file}`",
        ) from error
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise ConfigProblem(
            f"{file} is open to others (mode {stat.S_IMODE(mode):o})",
            hint=f"`chmod 600 {file}` and a new token in it",
        )
    if len(content) < SHORTEST:
        raise ConfigProblem(
            f"the token in {file} is shorter than {SHORTEST} characters",
            hint=f"`openssl rand -hex 32 > {file}`",
        )
    return content
