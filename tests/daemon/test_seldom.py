from __future__ import annotations

import logging

import pytest

from redrived.seldom import Seldom


def test_a_peer_fills_one_line_a_minute_and_the_rest_is_counted(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    seldom = Seldom(logging.getLogger("peers"))
    for _ in range(100):
        seldom.warn("%s knocks", "eve")
    now += Seldom.EVERY
    seldom.warn("%s knocks", "eve")
    assert [record.getMessage() for record in caplog.records] == [
        "eve knocks",
        "eve knocks (99 like this since the last one)",
    ]


def test_what_is_about_something_else_is_said_at_once(caplog: pytest.LogCaptureFixture) -> None:
    seldom = Seldom(logging.getLogger("peers"))
    for about in ("full", "locked", "full", "locked"):
        seldom.warn("the store is %s", about, about=about)
    assert [record.getMessage() for record in caplog.records] == [
        "the store is full",
        "the store is locked",
    ]
