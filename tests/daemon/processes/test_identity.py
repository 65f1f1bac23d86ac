"""Nobody is signalled who only has the number of the one that was meant."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator

import pytest

from redrived.processes.identity import Identity


@pytest.fixture
def sleeper() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "300"]) as process:
        yield process
        process.kill()


def identity_of(process: subprocess.Popen[bytes]) -> Identity:
    identity = Identity.of(process.pid)
    assert identity is not None
    return identity


def test_the_one_that_is_meant_is_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    assert identity_of(sleeper).signal(signal.SIGTERM)
    assert sleeper.wait() == -signal.SIGTERM


def test_a_dead_process_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    identity = identity_of(sleeper)
    sleeper.kill()
    sleeper.wait()
    assert not identity.is_alive()
    assert not identity.signal(signal.SIGKILL)


def test_a_stranger_with_the_same_pid_is_not_signalled(sleeper: subprocess.Popen[bytes]) -> None:
    now = identity_of(sleeper)
    before = Identity(now.boot, now.pid, now.started - 1)
    last_boot = Identity("6f1c", now.pid, now.started)
    assert not before.signal(signal.SIGKILL)
    assert not last_boot.signal(signal.SIGKILL)
    assert now.is_alive()


def test_a_zombie_is_nobody() -> None:
    process = subprocess.Popen(["true"])
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert Identity.of(process.pid) is None
    process.wait()
