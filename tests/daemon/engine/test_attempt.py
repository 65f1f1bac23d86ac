"""What is known of an attempt that runs: when it is late, overdue, forgiven."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.config.sections import Config, Heartbeat, Task
from redrived.engine.attempt import Attempt, Ending
from redrived.engine.definitions import TaskDefinition
from redrived.engine.python_runner import end_of
from redrived.engine.watch import Watch
from redrived.processes.wire import Report
from redrived.store.picking import InHand
from support.clock import FakeClock
from support.engines import an_engine


class Silent:
    """Runs nothing."""

    def end(self, attempt: Attempt, grace: float) -> None: ...

    def pids(self) -> list[int]:
        return []

    def unkillable(self) -> tuple[int, ...]:
        return ()

    def live_output(self, attempt: Attempt) -> str | None:
        return None

    def sample(self) -> int:
        return 0

    def cut_output(self, attempt: Attempt, limit: int) -> None: ...

    def keeps_output(self) -> bool:
        return False


def attempt(timeout: float | None = None) -> Attempt:
    beats = Heartbeat(source="notify", every=1.0, stalled_after=10.0)
    task = Task(command=["sleep", "60"], heartbeat=beats, timeout=timeout)
    job = InHand._make([1, *[None] * 19, "default", "sleep"])
    return Attempt(job, TaskDefinition("sleep", task, Config()), Silent(), 0, now=100.0)


def test_a_python_task_beats_by_itself_unless_it_is_said_otherwise() -> None:
    task = Task(python="a:b", heartbeat=Heartbeat(stalled_after=2.0))
    assert TaskDefinition("t", task, Config()).heartbeat_source == "job"


def test_a_silence_is_told_once_when_half_of_what_it_may_last_has_passed() -> None:
    watched = attempt()
    assert not watched.falls_late(105.0)
    assert watched.falls_late(105.1)
    assert not watched.falls_late(106.0)
    watched.beat(107.0)
    assert not watched.falls_late(112.0)
    assert watched.falls_late(112.5)


def test_what_the_daemon_missed_itself_is_nobodys_silence() -> None:
    watched = attempt(timeout=60.0)
    watched.forgive(50.0)
    assert watched.overdue(159.0) is None
    assert watched.overdue(161.0) is Ending.STALLED
    watched.beat(205.0)
    assert watched.overdue(209.0) is None
    assert watched.overdue(211.0) is Ending.TIMEOUT


@pytest.mark.parametrize(
    ("first", "then", "wins"),
    [
        (Ending.RESTART, Ending.CANCEL, Ending.CANCEL),
        (Ending.CANCEL, Ending.RESTART, Ending.CANCEL),
        (Ending.STALLED, Ending.KILL, Ending.KILL),
        (Ending.STALLED, Ending.TIMEOUT, Ending.STALLED),
    ],
)
def test_a_persons_stop_wins_over_everything_else(
    first: Ending, then: Ending, wins: Ending
) -> None:
    watched = attempt()
    watched.mark(first)
    watched.mark(then)
    assert watched.ending is wins


class Broken(Silent):
    def sample(self) -> int:
        raise OSError("nobody can look at it")


async def test_an_attempt_that_cannot_be_looked_at_hides_no_other(tmp_path: Path) -> None:
    async with an_engine(tmp_path) as engine:
        clock = engine.clock
        assert isinstance(clock, FakeClock)
        watch = Watch(engine.attempts, engine.ender, engine.outputs, clock)
        broken, late = attempt(), attempt(timeout=5.0)
        broken.executor = Broken()
        late.job = late.job._replace(id=2)
        for each in (broken, late):
            each.since = each.beat_at = clock.monotonic()
            engine.attempts.add(each)
        for _ in range(30):  # ticks that come in time; a late one would be forgiven
            clock.move(0.25)
            watch.tick()
        assert late.ending is Ending.TIMEOUT


def test_a_key_holds_nothing_that_a_database_cannot_keep() -> None:
    task = TaskDefinition("t", Task(command=["true"], concurrency_key="{{ args.who }}"), Config())
    assert task.limit_key({"who": "a\0b"}) == "t/a\N{REPLACEMENT CHARACTER}b"
    assert task.limit_key({"who": 7}) == "t/7"


def test_it_does_not_end_before_what_was_noticed_of_it() -> None:
    report = Report(job=1, lease=1, began=10, took=20)
    noticed = attempt()
    assert end_of(report, noticed) == 30
    noticed.noticed_at = 50
    assert end_of(report, noticed) == 50
    assert end_of(report, None) == 30
