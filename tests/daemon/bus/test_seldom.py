from __future__ import annotations

import logging

import pytest

from redrived.bus.seldom import Seldom


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
        "eve knocks (0 like this since the last one)",
        "eve knocks (99 like this since the last one)",
    ]
