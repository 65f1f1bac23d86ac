from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from redrive import Client
from support.terminal import in_terminal

from .conftest import Redrive

# What opens the console is replaced by what says so.
SCRIPT = """
import os
os.execv = lambda path, words: print("became", *words[1:]) or os._exit(0)
from redrive.cli.main import main
main()
"""


def test_without_a_terminal_it_becomes_the_daemon(
    redrive: Redrive, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    became: list[str] = []

    def execv(path: str, words: list[str]) -> NoReturn:
        became.extend(words)
        raise SystemExit

    monkeypatch.setattr(os, "execv", execv)
    with pytest.raises(SystemExit):
        redrive("up")
    assert became == [sys.executable, "-m", "redrived", "--config", str(folder / "config.toml")]


def test_on_a_terminal_it_starts_a_daemon_and_opens_the_console(folder: Path) -> None:
    environ = {"REDRIVE_CONFIG": str(folder / "config.toml")}
    code, out = in_terminal(SCRIPT, ["up"], environ=environ)
    assert code == 0, out
    with Client(folder / "config.toml") as client:
        pid = client.hello().pid
        try:
            assert f"it logs to {folder}/state/redrived.log" in out
            assert f"became -m redrive_tui --config {folder}/config.toml" in out
            assert os.getsid(pid) == pid, "it would end with the terminal"
            _, again = in_terminal(SCRIPT, ["up"], environ=environ)
            assert "starting" not in again
            assert client.hello().pid == pid
        finally:
            os.kill(pid, 9)


def test_a_daemon_that_does_not_come_up_says_why(folder: Path) -> None:
    config = folder / "config.toml"
    config.write_text(config.read_text() + '[tasks.x]\nretry = "nobody"\n')
    code, out = in_terminal(SCRIPT, ["up"], environ={"REDRIVE_CONFIG": str(config)})
    assert code == 78
    assert f"{config}:5: tasks.x" in out
    assert "became" not in out


def test_on_a_terminal_no_verb_is_the_console(folder: Path) -> None:
    environ = {"REDRIVE_CONFIG": str(folder / "config.toml")}
    _, out = in_terminal(SCRIPT, [], environ=environ)
    assert out.startswith(f"became -m redrive_tui --config {folder}/config.toml")
