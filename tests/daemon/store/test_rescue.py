"""What a daemon that died has left, as its store knows it."""

from __future__ import annotations

from redrived.store.notice import Notice, notice
from redrived.store.picking import InHand
from redrived.store.rescue import told_unkillable
from support.ground import Ground


def say_unkillable(ground: Ground, job: InHand, pid: int) -> None:
    data = {"unkillable": [pid]}
    kind, now = "action_unkillable", ground.clock.now()
    item = Notice(job=job.id, lease=job.lease, attempt=job.attempt, kind=kind, at=now, data=data)
    ground.do(notice, item)


def test_a_process_is_of_the_attempt_of_which_it_was_told(ground: Ground) -> None:
    ground.add()
    [first] = ground.take()
    say_unkillable(ground, first, 100)
    assert ground.ask(told_unkillable, "n1") == {100: first.id}
    assert ground.ask(told_unkillable, "n2") == {}

    ground.fail(first, retry_in=0)
    [second] = ground.take()
    assert ground.ask(told_unkillable, "n1") == {}  # somebody else may have its number by now
    say_unkillable(ground, second, 101)
    assert ground.ask(told_unkillable, "n1") == {101: first.id}


def test_an_attempt_that_has_not_begun_has_no_processes(ground: Ground) -> None:
    ground.add()
    [first] = ground.take()
    say_unkillable(ground, first, 100)
    ground.fail(first, retry_in=0)
    ground.hand(1, 1)
    assert ground.ask(told_unkillable, "n1") == {}
