"""Descriptors that libzmq told of, by the time somebody looks at them."""

from __future__ import annotations

import os
import socket
from pathlib import Path

from redrived.bus.connections import hold


def open_descriptors() -> set[str]:
    return set(os.listdir("/proc/self/fd"))


def test_what_has_become_a_file_is_let_go_and_nothing_stays_open(tmp_path: Path) -> None:
    with (tmp_path / "config.toml").open("w") as file:
        before = open_descriptors()
        for _ in range(3):
            assert hold(file.fileno()) is None
        assert open_descriptors() == before


def test_what_is_closed_by_now_is_let_go() -> None:
    with socket.socket() as connection:
        descriptor = connection.fileno()
    assert hold(descriptor) is None


def test_a_connection_is_held_until_it_is_let_go() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        before = open_descriptors()
        held = hold(ours.fileno())
        assert held is not None
        with held:
            assert os.fstat(held.fileno()).st_ino == os.fstat(ours.fileno()).st_ino
        assert open_descriptors() == before
