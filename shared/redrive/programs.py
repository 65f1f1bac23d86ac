"""Whether the programs that tasks and hooks start are there, for whoever asks.

A text for the shell tells of its first word only, and a word with a template of nothing.
"""

from __future__ import annotations

import os
import re
import shlex
import stat
import subprocess
from collections.abc import Iterator, Mapping

from redrive.config import Config
from redrive.config.sections import Task
from redrive.protocol.rows import Check

_FIRST_WORD = re.compile(r"\s*([\w./+-]+)(?=\s|;|$)")


def program_checks(config: Config, environ: Mapping[str, str] = os.environ) -> Iterator[Check]:
    """One for each task and hook whose program is missing."""
    path = environ.get("PATH", os.defpath)
    for name, task in config.tasks.items():
        program = _program(task.command)
        searched = task.env.get("PATH", path)
        if program and not _is_there(program, searched, task.cwd or config.folder, task):
            hint = f"install it, or mend `command` in [tasks.{name}]; its jobs would die of it"
            yield _missing(config, f"task {name}", program, hint)
    for place, hook in enumerate(config.hooks):
        program = _program(hook.command)
        if program and not _is_there(program, path, config.folder):
            hint = f"install it, or mend `command` in hooks[{place}]; nobody would be told"
            yield _missing(config, f"hook {place}", program, hint)


def _missing(config: Config, name: str, program: str, hint: str) -> Check:
    where = "" if "/" in program else ", seen with the PATH of whoever asks"
    text = config.redact(f"there is no program {program}{where}")
    return Check(name=name, ok=False, text=text, hint=hint)


def _program(command: str | list[str] | None) -> str | None:
    """What is started first, where that is plain."""
    match command:
        case [program, *_] if "{" not in program:
            return program
        case str() if found := _FIRST_WORD.match(command):
            return found[1]
        case _:
            return None


def _is_there(program: str, path: str, cwd: str, task: Task | None = None) -> bool:
    folders = [""] if "/" in program else path.split(os.pathsep)
    if any(_can_run(os.path.join(cwd, folder, program)) for folder in folders):
        return True
    is_for_the_shell = task is not None and isinstance(task.command, str)
    return is_for_the_shell and "/" not in program and _is_of_the_shell(program)


def _can_run(place: str) -> bool:
    """What may not be looked at counts as right."""
    try:
        mode = os.stat(place).st_mode
    except PermissionError:
        return True
    except OSError:
        return False
    return stat.S_ISREG(mode) and bool(mode & 0o111)


def _is_of_the_shell(word: str) -> bool:
    """`cd`, `if` and the like."""
    asked = f"command -v {shlex.quote(word)}"
    found = subprocess.run(
        ["/bin/sh", "-c", asked], env={"PATH": ""}, capture_output=True, check=False
    )
    return found.returncode == 0
