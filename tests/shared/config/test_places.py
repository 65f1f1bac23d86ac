"""What a config names on the machine, and what is said when it is not there."""

from __future__ import annotations

import grp
import os
from pathlib import Path

import pytest

from redrive.config import Loaded, load
from redrive.config.places import LONGEST_SOCKET_PATH

OWN_GROUP = grp.getgrgid(os.getgid()).gr_name


def look(folder: Path, text: str) -> Loaded:
    file = folder / "config.toml"
    file.write_text(text)
    return load(file, {"XDG_RUNTIME_DIR": "/run/me"}, look_around=True)


MISSING = [
    (
        '[http]\nlisten = "127.0.0.1:1"\ntoken_file = "tokn"',
        ('3: http.token_file: got "{}/tokn", which is not there, expected a file, '
        'did you mean "token"?'),
    ),
    (
        '[http]\nlisten = "127.0.0.1:1"\ntoken_file = "open"',
        ("3: http.token_file: {0}/open is open to others (mode 644), "
        "expected `chmod 600 {0}/open` and a new token in it"),
    ),
    (
        '[http]\nlisten = "127.0.0.1:1"\ntoken_file = "short"',
        ("3: http.token_file: the token in {0}/short is shorter than 16 characters, "
        "expected `openssl rand -hex 32 > {0}/short`"),
    ),
    (
        '[console]\nkeymap = "keys.tml"',
        ('2: console.keymap: got "{}/keys.tml", which is not there, expected a file, '
        'did you mean "keys.toml"?'),
    ),
    (
        '[console]\nkeymap = "app"',
        '2: console.keymap: got "{}/app", which is something else, expected a file',
    ),
    (
        '[pools.default]\npython = "zzz/python"',
        '2: pools.default.python: got "{}/zzz/python", which is not there, expected a program',
    ),
    (
        '[pools.default]\npython = "keys.toml"',
        '2: pools.default.python: got "{}/keys.toml", which is something else, expected a program',
    ),
    (
        '[pools.default]\npath = [\n"app",\n"ap",\n"app.zip"]',
        ('4: pools.default.path[1]: got "{}/ap", which is not there, expected a folder, '
        'did you mean "app"?'),
    ),
    (
        '[tasks.t]\ncommand = ["true"]\ncwd = "apps"',
        '3: tasks.t.cwd: got "{}/apps", which is not there, expected a folder, did you mean "app"?',
    ),
    (
        f'[bus]\noperators = "{OWN_GROUP}x"',
        f'2: bus.operators: unknown group "{OWN_GROUP}x", did you mean "{OWN_GROUP}"?',
    ),
    (
        '[bus]\nevents = "tcp://127.0.0.1:1"\ncurve = "keyz"',
        '3: bus.curve: got "{}/keyz", which is not there, expected a folder',
    ),
    (
        f'[daemon]\nname = "n"\nruntime_dir = "/{"r" * 100}"',
        (f"3: daemon.runtime_dir: the socket /{'r' * 100}/events would have 6 bytes too many, "
        "expected a shorter path"),
    ),
    (
        (f'[daemon]\nruntime_dir = "/{"r" * 80}"\n[tasks.t]\ncommand = ["true"]\n'
        'heartbeat = { from = "notify" }'),
        (f"5: tasks.t.heartbeat: $NOTIFY_SOCKET below /{'r' * 80} may have 5 bytes too many, "
        "expected a shorter [daemon] runtime_dir"),
    ),
    (
        f'[bus]\nquery = "ipc:///run/{"q" * 110}"',
        (f"2: bus.query: the socket /run/{'q' * 110} would have 8 bytes too many, "
        "expected a shorter path"),
    ),
]  # fmt: skip


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    for name, mode in (("token", 0o600), ("open", 0o644), ("keys.toml", 0o600), ("app.zip", 0o600)):
        (tmp_path / name).write_text("0123456789abcdef")
        (tmp_path / name).chmod(mode)
    (tmp_path / "short").touch(0o600)
    return tmp_path


@pytest.mark.parametrize(("text", "said"), MISSING, ids=[said[:40] for _, said in MISSING])
def test_what_is_not_there_is_named_with_its_place_and_what_may_be_meant(
    machine: Path, text: str, said: str
) -> None:
    problems = look(machine, text).problems
    assert [str(each) for each in problems] == [f"{machine}/config.toml:{said.format(machine)}"]
    assert load(machine / "config.toml", {}).problems == ()  # it may come later


def test_what_is_there_is_right(machine: Path) -> None:
    text = f"""
[bus]
viewers = "{OWN_GROUP}"
[http]
listen = "127.0.0.1:1"
token_file = "token"
[console]
keymap = "keys.toml"
[pools.default]
python = "/bin/sh"
path = ["app", "app.zip"]
[tasks.t]
command = ["true"]
cwd = "app"
"""
    assert look(machine, text).problems == ()


@pytest.mark.parametrize("excess", [0, 1])
def test_a_folder_of_sockets_may_be_as_long_as_the_daemon_can_bind(
    tmp_path: Path, excess: int
) -> None:
    folder = "/" + "r" * (LONGEST_SOCKET_PATH - len("/.12345678/s") - 1 + excess)
    assert len(look(tmp_path, f'[daemon]\nruntime_dir = "{folder}"').problems) == excess


def test_what_comes_from_the_environment_is_not_shown(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text('[tasks.t]\ncommand = ["true"]\ncwd = "/nowhere/${SECRET}"')
    (problem,) = load(file, {"SECRET": "hunter2"}, look_around=True).problems
    assert problem.text.startswith('got "/nowhere/[redacted]", which is not there')
