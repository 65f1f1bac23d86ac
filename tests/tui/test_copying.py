"""A clipboard that works here, and a word about which it was."""

from __future__ import annotations

import os
import stat
import tempfile
from pathlib import Path

import pytest

from redrive_tui.copying import OSC_52_LIMIT, copy, copyable
from support import incident


async def test_over_ssh_the_terminal_is_asked() -> None:
    sent: list[str] = []

    told = await copy("12", sent.append, {"SSH_TTY": "/dev/pts/1", "DISPLAY": ":0"})

    assert sent == ["12"]
    assert "through the terminal" in told


async def test_at_home_the_desktops_own_command_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = tmp_path / "wl-copy"
    command.write_text(f"#!/bin/sh\ncat > {tmp_path}/clipboard\n")
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    sent: list[str] = []

    told = await copy("12", sent.append, {"WAYLAND_DISPLAY": "wayland-0"})

    assert (tmp_path / "clipboard").read_text() == "12"
    assert told == "copied with wl-copy"
    assert sent == []


async def test_what_is_too_long_for_a_terminal_goes_into_a_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    sent: list[str] = []

    told = await copy("x" * (OSC_52_LIMIT + 1), sent.append, {})

    assert sent == []
    assert f"written to {tmp_path}/redrive-" in told


def test_the_parts_of_a_dead_job_can_be_copied_by_name() -> None:
    dead = next(job for job in incident.jobs() if job.id == 235)
    parts = copyable(dead)

    assert parts["id"] == "235"
    assert parts["command that requeues it"] == "redrive requeue 235"
    assert parts["error"].startswith("OperationalError: could not connect")
