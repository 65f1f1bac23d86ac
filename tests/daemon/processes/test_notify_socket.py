"""Commands report by the sd_notify protocol; nonsense is ignored."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.models import Progress
from redrived.processes.notify_socket import Notice, NotifySocket, parse
from support.processes import eventually


@pytest.mark.parametrize(
    ("datagram", "notice"),
    [
        (b"WATCHDOG=1", Notice()),
        (b"STATUS=half way\nREADY=1", Notice(status="half way")),
        (b"X_REDRIVE_PROGRESS=3/10", Notice(progress=Progress(done=3, total=10))),
        (b"X_REDRIVE_PROGRESS=3", Notice(progress=Progress(done=3))),
        (b"X_REDRIVE_METRIC_rows=12.5", Notice(metrics={"rows": 12.5})),
        (
            b"WATCHDOG=1\nX_REDRIVE_PROGRESS=x/y\nX_REDRIVE_METRIC_a=nan\nX_REDRIVE_METRIC_b=2\n",
            Notice(metrics={"b": 2}),
        ),
        (b"WATCHDOG=trigger", None),
        (b"READY=1\nFDSTORE=1", None),
        (b"X_REDRIVE_PROGRESS=3/", Notice(progress=Progress(done=3))),
        (b"X_REDRIVE_PROGRESS=inf/1", None),
        (b"X_REDRIVE_PROGRESS=-1/nan", None),
        (b"X_REDRIVE_PROGRESS=-1/10", None),
        (b"X_REDRIVE_PROGRESS=1/nan", None),
        (b"X_REDRIVE_PROGRESS=1/-10", None),
        (b"X_REDRIVE_PROGRESS=1/many", None),
        (b"", None),
    ],
)
def test_a_datagram_says_what_its_lines_say(datagram: bytes, notice: Notice | None) -> None:
    assert parse(datagram) == notice


@given(st.binary(max_size=200))
def test_no_datagram_is_too_strange(datagram: bytes) -> None:
    parse(datagram)


@pytest.fixture
def say(tmp_path: Path) -> Callable[[bytes], None]:
    def say(datagram: bytes) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as speaker:
            speaker.sendto(datagram, str(tmp_path / "notify"))

    return say


async def test_notices_arrive_while_the_command_runs(
    tmp_path: Path, say: Callable[[bytes], None]
) -> None:
    heard: list[Notice] = []
    notify = NotifySocket(str(tmp_path / "notify"), heard.append)
    say(b"STATUS=one")
    say(b"\xff\xfe")
    await eventually(lambda: heard)
    say(b"STATUS=" + b"x" * 100_000)
    say(b"STATUS=two")
    notify.close()
    assert [notice.status and len(notice.status) for notice in heard] == [3, 8185, 3]
    assert not (tmp_path / "notify").exists()


async def test_a_path_that_is_too_long_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="too long"):
        NotifySocket(str(tmp_path / ("x" * 120)), lambda _: None)
