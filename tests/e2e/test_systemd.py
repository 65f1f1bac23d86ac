"""The whole conversation with systemd, against a stand-in for its socket."""

from __future__ import annotations

import os
import signal
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.daemon import Daemon, eventually
from support.systemd import NotifySocket

WATCHDOG = 3.0  # seconds; fed each second
SLEEPER = """
[tasks.sleep]
command = ["sleep", "60"]

[tasks.env]
command = ["env"]
"""


class HangingDaemon(Daemon):
    program = (str(Path(__file__).parents[1] / "support/hanging_redrived.py"),)


@pytest.fixture
def notify(tmp_path: Path) -> Iterator[NotifySocket]:
    made = NotifySocket(tmp_path)
    yield made
    made.close()


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Daemon]:
    made = Daemon(tmp_path, SLEEPER)
    yield made
    if made.process is not None:
        made.process.kill()
        made.process.wait()


def test_a_start_says_what_takes_long_then_that_it_is_ready(
    daemon: Daemon, notify: NotifySocket
) -> None:
    daemon.start(env=notify.env())
    notify.wait_for("READY", "1")
    assert notify.heard[0] == {"STATUS": "opening the store"}
    assert "EXTEND_TIMEOUT_USEC" in notify.heard[1]
    assert notify.heard[2] == {"STATUS": "settling what an earlier daemon left"}
    assert "EXTEND_TIMEOUT_USEC" in notify.heard[3]
    notify.wait_for("STATUS", "running: 0 leased, 0 queued")


def test_the_watchdog_is_fed_while_all_is_well(daemon: Daemon, notify: NotifySocket) -> None:
    daemon.start(env=notify.env(watchdog=WATCHDOG))
    notify.wait_for("READY")
    notify.wait_for("WATCHDOG", "1")
    notify.wait_for("WATCHDOG", "1")


def test_a_daemon_that_stands_still_is_not_vouched_for_until_it_goes_on(
    daemon: Daemon, notify: NotifySocket
) -> None:
    daemon.start(env=notify.env(watchdog=WATCHDOG))
    notify.wait_for("WATCHDOG", "1")
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGSTOP)
    eventually(lambda: is_stopped(daemon), "it stands still")
    notify.forget()
    assert notify.says_nothing(WATCHDOG)
    daemon.process.send_signal(signal.SIGCONT)
    notify.wait_for("WATCHDOG", "1")


def test_a_stop_is_told_before_its_drain(daemon: Daemon, notify: NotifySocket) -> None:
    daemon.start(env=notify.env())
    with daemon.client() as client:
        client.enqueue("sleep")
        notify.wait_for("STATUS", "running: 1 leased")
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGTERM)
        notify.wait_for("STOPPING", "1")
        notify.wait_for("STATUS", "draining: 1 attempt under way")
        notify.wait_for("EXTEND_TIMEOUT_USEC")
    assert daemon.stop() == 0


def test_a_reload_is_told_from_begin_to_end(daemon: Daemon, notify: NotifySocket) -> None:
    daemon.start(env=notify.env())
    notify.wait_for("READY")
    assert daemon.process is not None
    good = daemon.config.read_text()
    daemon.config.write_text(f'{good}[tasks.new]\ncommand = ["true"]\n')
    daemon.process.send_signal(signal.SIGHUP)
    assert int(notify.wait_for("RELOADING", "1")["MONOTONIC_USEC"]) > 0
    assert notify.wait_for("READY", "1")["STATUS"] == "config reloaded"
    daemon.config.write_text(f"{good}[tasks.new]\ncommand = 5\n")
    daemon.process.send_signal(signal.SIGHUP)
    notify.wait_for("RELOADING", "1")
    assert "tasks.new.command" in notify.wait_for("READY", "1")["STATUS"]
    assert "tasks.new.command" in notify.wait_for("STATUS", "running: ")["STATUS"]  # it stays
    with daemon.client() as client:
        client.enqueue("new")  # still there
    daemon.config.write_text(good)
    daemon.process.send_signal(signal.SIGHUP)
    assert notify.wait_for("READY", "1")["STATUS"] == "config reloaded"
    assert "rejected" not in notify.wait_for("STATUS", "running: ")["STATUS"]


def test_no_job_inherits_what_systemd_gave_the_daemon(daemon: Daemon, notify: NotifySocket) -> None:
    secrets = {
        "LISTEN_FDS": "1",
        "CREDENTIALS_DIRECTORY": "/nowhere",
        "INVOCATION_ID": "x",
        "PGPASSWORD": "hush",
    }
    daemon.start(env={**notify.env(watchdog=30), **secrets})
    with daemon.client() as client:
        job = client.enqueue("env")
        client.wait(str(job.id))
        seen = client.log(job.id).data.decode()
    names = {line.partition("=")[0] for line in seen.splitlines()}
    assert names >= {"PATH", "HOME"}
    assert not names & {"NOTIFY_SOCKET", "WATCHDOG_USEC", "WATCHDOG_PID", *secrets}


def test_told_to_stop_twice_it_waits_for_nobody(daemon: Daemon, notify: NotifySocket) -> None:
    daemon.config.write_text(daemon.config.read_text().replace('"5s"', '"10m"'))
    daemon.start(env=notify.env())
    with daemon.client() as client:
        job = client.enqueue("sleep")
        notify.wait_for("STATUS", "running: 1 leased")
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGTERM)
        notify.wait_for("STOPPING", "1")
        assert daemon.stop() == 0
    daemon.start(env=notify.env())
    with daemon.client() as client:
        shown = client.job(job.id)
    assert (shown.attempts, shown.budgets and shown.budgets.interruptions) in ((0, 1), (1, 1))


def test_a_stop_during_the_start_is_obeyed(daemon: Daemon, notify: NotifySocket) -> None:
    daemon.start(env=notify.env(), ready=False)
    notify.wait_for("STATUS", "opening the store")
    assert daemon.stop() == 0


def test_a_reload_during_the_drain_is_answered_and_stops_nothing(
    daemon: Daemon, notify: NotifySocket
) -> None:
    daemon.start(env=notify.env())
    with daemon.client() as client:
        client.enqueue("sleep")
        notify.wait_for("STATUS", "running: 1 leased")
    assert daemon.process is not None
    daemon.process.send_signal(signal.SIGTERM)
    notify.wait_for("STOPPING", "1")
    daemon.process.send_signal(signal.SIGHUP)
    assert notify.wait_for("READY", "1")["STATUS"] == "the config has not changed"
    assert daemon.stop() == 0


def test_nothing_it_makes_is_open_to_others(daemon: Daemon) -> None:
    umask = os.umask(0)
    try:
        daemon.start()
    finally:
        os.umask(umask)
    with daemon.client() as client:
        client.wait(str(client.enqueue("env").id))
    made = [daemon.folder / name for name in ("state", "run")]
    made += [path for folder in made for path in folder.rglob("*")]
    assert len(made) > 8
    assert [path for path in made if stat.S_IMODE(path.lstat().st_mode) & 0o077] == []


def test_f46_a_loop_that_hangs_is_not_vouched_for_leaves_a_trace_and_its_jobs_are_settled(
    tmp_path: Path, notify: NotifySocket
) -> None:
    daemon = HangingDaemon(tmp_path, SLEEPER)
    try:
        daemon.start(env=notify.env(watchdog=WATCHDOG))
        with daemon.client() as client:
            job = client.enqueue("sleep")
        notify.wait_for("STATUS", "running: 1 leased")
        notify.wait_for("WATCHDOG", "1")
        assert daemon.process is not None
        daemon.process.send_signal(signal.SIGUSR1)
        # What it said before the signal reached it; a whole interval may lie behind that.
        while not notify.says_nothing(WATCHDOG):
            pass
        daemon.process.send_signal(signal.SIGABRT)  # as systemd does when it hears nothing
        assert daemon.process.wait(30) == -signal.SIGABRT
        said = daemon.log.read_text()
        assert "Fatal Python error: Aborted" in said
        assert "in hang" in said  # where it stood

        daemon.start(env=notify.env(watchdog=WATCHDOG))
        with daemon.client() as client:
            client.wait(str(job.id))
            told = [event.type for event in client.events(str(job.id)).events]
        assert "action_lost" in told
        notify.wait_for("WATCHDOG", "1")
        assert daemon.stop() == 0
    finally:
        daemon.kill()


def is_stopped(daemon: Daemon) -> bool:
    assert daemon.process is not None
    return "State:\tT" in Path(f"/proc/{daemon.process.pid}/status").read_text()
