"""Interpreters as applications bring them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def bare_venv(folder: Path) -> str:
    """An interpreter with nothing installed, not even pip."""
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
    return str(folder / "bin" / "python")
