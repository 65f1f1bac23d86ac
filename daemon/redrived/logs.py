"""Where the daemon's own words go: stderr, in the form whoever reads it wants."""

from __future__ import annotations

import json
import logging
import os
import sys
from typing import Literal

from redrive.instants import SECOND, iso
from redrive.printable import visible, without_sequences

Format = Literal["auto", "text", "json", "journal"]

# What they say below a warning is about themselves: a line per request, per timer.
_CHATTY = ("alembic", "apscheduler", "httpcore", "httpx", "uvicorn")

# The journal reads a level from the start of each line (sd-daemon(3)).
_JOURNAL_LEVELS = {"DEBUG": 7, "INFO": 6, "WARNING": 4, "ERROR": 3, "CRITICAL": 2}


def set_up(level: str, form: Format) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_formatter(form))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    for library in _CHATTY:
        logging.getLogger(library).setLevel(logging.WARNING)


def _formatter(form: Format) -> logging.Formatter:
    if form == "auto":
        form = "journal" if os.environ.get("JOURNAL_STREAM") else "text"
    match form:
        case "json":
            return JsonFormatter()
        case "journal":
            return JournalFormatter("%(message)s")
        case _:
            return TextFormatter("%(asctime)s %(levelname)-7s %(message)s")


def _lines(text: str) -> list[str]:
    """Who is quoted, a hook's command say, neither commands a terminal nor writes lines of ours."""
    return visible(without_sequences(text)).splitlines()


class TextFormatter(logging.Formatter):
    """A line for a person; what it goes on with is set in."""

    def format(self, record: logging.LogRecord) -> str:
        return "\n    ".join(_lines(super().format(record)))


class JournalFormatter(logging.Formatter):
    """Every line with its level; the journal adds the time."""

    def format(self, record: logging.LogRecord) -> str:
        mark = f"<{_JOURNAL_LEVELS.get(record.levelname, 6)}>"
        return "\n".join(mark + line for line in _lines(super().format(record)))


class JsonFormatter(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": iso(round(record.created * SECOND)),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)  # in ASCII: a file's name may be no valid text
