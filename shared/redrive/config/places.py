"""What a config names on the machine must be there: files, folders, groups, room for sockets.

The file alone does not tell; so this is asked by `config check`, `doctor` and a reload, while
a daemon that starts only warns: one whose disk comes later is better than none. What the
asker may not look at counts as right.
"""

from __future__ import annotations

import grp
import os
import stat
from collections.abc import Mapping
from difflib import get_close_matches
from pathlib import Path
from typing import Literal

from redrive.config.folders import runtime_dir
from redrive.config.lines import Key
from redrive.config.problems import Problems, instead
from redrive.config.sections import Bus, Config, Pool
from redrive.config.values import quoted
from redrive.errors import ConfigProblem
from redrive.token_file import read_token

LONGEST_SOCKET_PATH = 107  # bytes; the kernel's limit
_STAGED = len("/.xxxxxxxx/s")  # where a socket is bound, before it is moved beside that folder
_LONGEST_NOTICE = len("/attempts/9999999999.999.notify")  # of a job and its lease

_Noun = Literal["a file", "a folder", "a program"]


def check_places(config: Config, environ: Mapping[str, str], problems: Problems) -> None:
    _check_bus(config, environ, problems)
    _check_notices(config, environ, problems)
    if config.http and config.http.token_file:
        _check_token(config.http.token_file, problems)
    if config.console.keymap:
        _check_path(config.console.keymap, "a file", ("console", "keymap"), problems)
    for name, pool in config.pools.items():
        _check_pool(pool, ("pools", name), problems)
    for name, task in config.tasks.items():
        if task.cwd:
            _check_path(task.cwd, "a folder", ("tasks", name, "cwd"), problems)


def _check_bus(config: Config, environ: Mapping[str, str], problems: Problems) -> None:
    bus = config.bus
    for name in ("viewers", "operators"):
        _check_group(getattr(bus, name), ("bus", name), problems)
    if bus.curve and _uses_tcp(bus):
        _check_path(bus.curve, "a folder", ("bus", "curve"), problems)
    for name in ("events", "query", "control"):
        address: str | None = getattr(bus, name)
        if address is None:
            folder = runtime_dir(config, environ).absolute()
            _check_socket(folder / name, ("daemon", "runtime_dir"), problems)
        elif address.startswith("ipc://"):
            _check_socket(Path(address.removeprefix("ipc://")), ("bus", name), problems)


def _check_notices(config: Config, environ: Mapping[str, str], problems: Problems) -> None:
    """Commands that beat have a socket each, with a longer name than those of the bus."""
    folder = runtime_dir(config, environ).absolute()
    longest = len(os.fsencode(folder)) + _LONGEST_NOTICE
    for name, task in config.tasks.items():
        if task.heartbeat and task.heartbeat.source == "notify" and longest > LONGEST_SOCKET_PATH:
            excess = longest - LONGEST_SOCKET_PATH
            text = f"$NOTIFY_SOCKET below {folder} may have {excess} bytes too many, expected a "
            problems.doubt(("tasks", name, "heartbeat"), f"{text}shorter [daemon] runtime_dir")


def _uses_tcp(bus: Bus) -> bool:
    return any(str(each).startswith("tcp:") for each in (bus.events, bus.query, bus.control))


def _check_group(name: str | None, key: Key, problems: Problems) -> None:
    if name is None:
        return
    known = [group.gr_name for group in grp.getgrall()]
    try:
        grp.getgrnam(name)  # some directories of users do not list all they know
    except KeyError:
        problems.add(key, f"unknown group {quoted(name)}, {instead(name, known)}")


def _check_socket(path: Path, key: Key, problems: Problems) -> None:
    excess = max(
        len(os.fsencode(path.parent)) + _STAGED - LONGEST_SOCKET_PATH,
        len(os.fsencode(path)) - LONGEST_SOCKET_PATH,
    )
    if excess > 0:
        text = f"the socket {path} would have {excess} bytes too many, expected a shorter path"
        problems.doubt(key, text)


def _check_token(file: str, problems: Problems) -> None:
    key: Key = ("http", "token_file")
    try:
        read_token(file)
    except ConfigProblem as problem:
        if isinstance(problem.__cause__, FileNotFoundError):
            _check_path(file, "a file", key, problems)
        elif not isinstance(problem.__cause__, PermissionError):
            problems.add(key, f"{problem.message}, expected {problem.hint}")


def _check_pool(pool: Pool, key: Key, problems: Problems) -> None:
    if pool.python:
        _check_path(pool.python, "a program", (*key, "python"), problems)
    for place, folder in enumerate(pool.path):
        noun: _Noun = "a file" if folder.endswith((".zip", ".pyz", ".egg")) else "a folder"
        _check_path(folder, noun, (*key, "path", place), problems)


def _check_path(path: str, noun: _Noun, key: Key, problems: Problems) -> None:
    try:
        mode = os.stat(path).st_mode
    except PermissionError:
        return
    except OSError:
        problems.add(key, f'got "{path}", which is not there, expected {noun}{_near(path)}')
        return
    is_right = {
        "a file": stat.S_ISREG(mode),
        "a folder": stat.S_ISDIR(mode),
        "a program": stat.S_ISREG(mode) and mode & 0o111,
    }
    if not is_right[noun]:
        problems.add(key, f'got "{path}", which is something else, expected {noun}')


def _near(path: str) -> str:
    """The name beside it that may be meant."""
    folder, name = os.path.split(path)
    try:
        near = get_close_matches(name, os.listdir(folder or "."), n=1)
    except OSError:
        return ""
    return f", did you mean {quoted(near[0])}?" if near else ""
