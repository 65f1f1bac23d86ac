"""What everything that runs is made of: locks, logs, loops, the supervisor's notes to systemd."""

from __future__ import annotations

import asyncio
import json
import logging
import os
import resource
import socket
import stat
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from redrive.config import load
from redrive.errors import AlreadyRunning, Exit, TryLater
from redrived import logs, seldom
from redrived.instance_lock import InstanceLock
from redrived.notify import Notifier
from redrived.service import Loop, Signal
from redrived.supervisor import Supervisor
from support.engine import WITHIN, running


def test_a_second_daemon_on_the_same_state_is_refused(tmp_path: Path) -> None:
    first, second = InstanceLock(tmp_path), InstanceLock(tmp_path)
    first.take()
    with pytest.raises(AlreadyRunning) as refused:
        second.take()
    assert refused.value.exit_code == Exit.UNAVAILABLE
    assert f"pid {os.getpid()}" in str(refused.value)

    first.release()
    second.take()
    second.release()


def test_a_lock_goes_with_the_process_that_held_it(tmp_path: Path) -> None:
    script = (
        "import sys, os\nfrom pathlib import Path\n"
        "from redrived.instance_lock import InstanceLock\n"
        "InstanceLock(Path(sys.argv[1])).take()\nos.kill(os.getpid(), 9)\n"
    )
    subprocess.run([sys.executable, "-c", script, str(tmp_path)], check=False)
    assert (tmp_path / "redrived.lock").exists()

    lock = InstanceLock(tmp_path)
    lock.take()
    lock.release()


def test_a_lock_has_a_number_that_no_other_has_and_the_next_daemon_finds_again(
    tmp_path: Path,
) -> None:
    first, other, next_one = (InstanceLock(tmp_path / name) for name in ("a", "b", "a"))
    first.take()
    other.take()
    number = first.number
    assert number != other.number
    first.release()
    next_one.take()
    assert next_one.number == number
    for lock in (other, next_one):
        lock.release()


def test_the_lock_is_nobody_elses_to_read(tmp_path: Path) -> None:
    lock = InstanceLock(tmp_path / "deep" / "state")
    lock.take()
    assert stat.S_IMODE(lock.path.stat().st_mode) == 0o600
    assert stat.S_IMODE(lock.path.parent.stat().st_mode) == 0o700
    lock.release()


async def test_a_signal_said_twice_is_heard_once() -> None:
    signal = Signal()
    signal.say()
    signal.say()
    await signal.hear()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(signal.hear(), 0.01)


class Stepping(Loop):
    """Counts its steps, and says when it has come as far as it should."""

    def __init__(self) -> None:
        super().__init__()
        self.steps = 0
        self.done = asyncio.Event()


class Counting(Stepping):
    """Fails at its first step, asks for another after its second."""

    async def run_once(self) -> bool:
        self.steps += 1
        if self.steps == 1:
            raise RuntimeError("a bad round")
        if self.steps == 3:
            self.done.set()
        return self.steps == 2


async def test_one_bad_round_does_not_end_a_loop(monkeypatch: pytest.MonkeyPatch) -> None:
    sleep = asyncio.sleep
    monkeypatch.setattr(asyncio, "sleep", lambda _: sleep(0))
    loop = Counting()
    await loop.start()
    loop.wake()
    async with asyncio.timeout(10):
        await loop.done.wait()
    await loop.stop()
    assert loop.steps == 3


class Troubled(Stepping):
    """Fails for two minutes in the same way, then in another."""

    async def run_once(self) -> bool:
        self.steps += 1
        if self.steps == 122:
            self.done.set()
            await asyncio.Event().wait()
        raise TryLater("the disk is full" if self.steps <= 120 else "the database is locked")


async def test_a_trouble_that_lasts_is_told_once_and_then_once_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    sleep = asyncio.sleep
    loop = Troubled()
    monkeypatch.setattr(asyncio, "sleep", lambda _: sleep(0))
    monkeypatch.setattr(seldom, "time", SimpleNamespace(monotonic=lambda: 1000.0 + loop.steps))
    await loop.start()
    loop.wake()
    async with asyncio.timeout(10):
        await loop.done.wait()
    await loop.stop()
    assert [record.getMessage() for record in caplog.records] == [
        "troubled goes on in a second: the disk is full",
        "troubled goes on in a second: the disk is full (59 like this since the last one)",
        "troubled goes on in a second: the database is locked",
    ]


def test_systemd_hears_every_word_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.bind(path)
        listener.setblocking(False)
        monkeypatch.setenv("NOTIFY_SOCKET", path)
        monkeypatch.setenv("WATCHDOG_USEC", "30000000")
        notifier = Notifier()
        assert "NOTIFY_SOCKET" not in os.environ
        assert "WATCHDOG_USEC" not in os.environ
        assert notifier.watchdog_every == 10

        notifier.ready()
        notifier.status("up")
        notifier.status("up")
        notifier.stopping()
        notifier.close()
        heard = [listener.recv(200).decode() for _ in range(3)]
        assert heard == ["READY=1\nSTATUS=running", "STATUS=up", "STOPPING=1"]


def test_without_a_socket_nobody_is_told_anything(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    notifier = Notifier()
    notifier.ready()
    assert notifier.watchdog_every == 0


def record(message: str, level: int = logging.WARNING) -> logging.LogRecord:
    return logging.LogRecord("redrived", level, __file__, 1, message, None, None)


def test_the_journal_gets_a_level_on_every_line() -> None:
    assert logs.JournalFormatter("%(message)s").format(record("one\ntwo")) == "<4>one\n<4>two"


def test_who_is_quoted_in_the_log_neither_commands_a_terminal_nor_writes_lines_of_ours() -> None:
    said = record("the hook failed: \x1b]0;title\x07\x1b[31mred \u202e\n2026 ERROR forged")
    text = logs.TextFormatter("%(levelname)s %(message)s").format(said)
    assert text == "WARNING the hook failed: red <U+202E>\n    2026 ERROR forged"
    journal = logs.JournalFormatter("%(message)s").format(said)
    assert journal == "<4>the hook failed: red <U+202E>\n<4>2026 ERROR forged"


def test_a_lock_is_held_also_where_its_pid_cannot_be_written(tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))
    lock = InstanceLock(tmp_path / "full")
    try:
        lock.take()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    with pytest.raises(AlreadyRunning, match="pid unknown"):
        InstanceLock(tmp_path / "full").take()
    lock.release()


def test_json_logs_are_one_object_a_line() -> None:
    line = json.loads(logs.JsonFormatter().format(record("it broke", logging.ERROR)))
    assert (line["level"], line["message"], line["logger"]) == ("error", "it broke", "redrived")


def test_json_logs_tell_the_time_in_utc_as_all_json_does(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "Asia/Kathmandu")
    time.tzset()
    try:
        said = record("it broke")
        said.created = 1_790_000_000.25
        line = json.loads(logs.JsonFormatter().format(said))
        assert line["at"] == "2026-09-21T14:13:20.250000Z"
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_name_that_is_no_text_loses_no_line_of_the_log() -> None:
    name = os.fsdecode(b"caf\xe9")
    line = json.loads(logs.JsonFormatter().format(record(f"{name} is gone")))
    assert line["message"] == f"{name} is gone"


class Stopping:
    """A service that may fail to stop."""

    def __init__(self, problem: Exception | None = None) -> None:
        self.is_stopped = False
        self._problem = problem

    async def start(self) -> None: ...

    async def stop(self) -> None:
        self.is_stopped = True
        if self._problem is not None:
            raise self._problem


async def test_a_service_that_fails_to_stop_keeps_no_other_from_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (tmp_path / "config.toml").touch()
    supervisor = Supervisor(load(tmp_path / "config.toml"))
    services = [Stopping(), Stopping(RuntimeError("no")), Stopping()]
    supervisor._started.extend(services)
    await supervisor._stop_services()
    assert all(service.is_stopped for service in services)
    assert "Stopping did not stop as it should" in caplog.text


async def test_a_drain_sees_that_all_is_idle_though_nobody_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the lease it waits for fails, because the store is in trouble."""
    async with running(tmp_path) as bench:
        supervisor = Supervisor(load(tmp_path / "config.toml"))
        bench.engine.drain(stop=False)
        monkeypatch.setattr(bench.engine.dispatcher, "_is_asking", True)
        waiting = asyncio.create_task(supervisor._until_idle(bench.engine, seconds=3600))
        await asyncio.sleep(0)
        monkeypatch.setattr(bench.engine.dispatcher, "_is_asking", False)
        async with asyncio.timeout(WITHIN):
            await waiting
