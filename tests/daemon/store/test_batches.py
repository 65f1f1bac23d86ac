"""Batches: gates that wait for every run, retries that wait for the first pass; S4 as it is."""

from __future__ import annotations

import pytest

from redrive.errors import WrongState
from redrive.protocol.rows import BatchRow, GateRow
from redrived.store import batch_pages
from redrived.store.actions import Act, act
from redrived.store.runs import NewRun, start
from support.ground import Ground
from support.runs import Track, seconds, step


@pytest.fixture
def track(ground: Ground) -> Track:
    """S4: downloads wait for all requests, then for a timer, and retry together."""
    download = step("download", gate="batch", delay=900, retry_together=True)
    return Track(ground, step("request"), download)


def batch(track: Track, name: str = "b") -> BatchRow:
    rows = track.ground.ask(batch_pages.batch_rows)
    return next(row for row in rows if row.name == name)


def gate(track: Track, number: int = 1) -> GateRow:
    return next(each for each in batch(track).gates if each.round == number)


def test_downloads_wait_until_every_request_of_the_batch_has_settled(track: Track) -> None:
    track.start_many(3, batch="b")
    first, second, third = track.ground.take(3)
    track.complete([first])
    track.fail_job(second, retry_in=60)
    track.fail_job(third)

    assert track.states(1) == {"request": "done", "download": "gated"}
    assert track.states(3) == {"request": "dead", "download": "skipped"}
    assert track.run(3).steps[1].why == "Request failed; download skipped"
    assert (gate(track).unsettled, gate(track).waiting, gate(track).opens_at) == (1, 1, None)

    track.ground.clock.move(60)
    track.promote()
    track.finish("request")
    opens_at = track.ground.clock.now() + seconds(900)
    assert (gate(track).unsettled, gate(track).waiting) == (0, 2)
    assert gate(track).opens_at == opens_at
    assert track.ground.landed[-1].gate_opens_at == opens_at
    assert track.run(1).steps[1].scheduled_for == opens_at


def test_a_failure_that_settles_last_starts_the_timer_too(track: Track) -> None:
    track.start_many(2, batch="b")
    first, second = track.ground.take(2)
    track.complete([first])
    track.ground.clock.move(10)
    track.fail_job(second)

    assert gate(track).opens_at == track.ground.clock.now() + seconds(900)


def test_a_gate_opens_when_its_timer_has_run_out_and_not_before(track: Track) -> None:
    track.start_many(2, batch="b")
    track.complete(track.ground.take(2))
    track.ground.clock.move(899)
    assert track.open_gates().runs == 0
    track.ground.clock.move(1)
    opened = track.open_gates()

    assert (opened.runs, opened.next_at) == (2, None)
    assert track.states(1) == {"request": "done", "download": "queued"}
    assert gate(track).opened_at == track.ground.clock.now()
    assert [each.type for each in track.ground.events()].count("gate_opened") == 1
    assert [job.step for job in track.ground.take(9)] == ["download", "download"]


def test_a_gate_lets_its_runs_through_in_pieces(track: Track) -> None:
    track.start_many(5, batch="b")
    track.complete(track.ground.take(5))
    track.ground.clock.move(900)

    assert [track.open_gates(2).runs for _ in range(4)] == [2, 2, 1, 0]
    assert [each.type for each in track.ground.events()].count("gate_opened") == 1
    assert len(track.ground.take(9)) == 5


def test_a_gate_behind_which_nobody_waits_never_opens(track: Track) -> None:
    track.start_many(2, batch="b")
    for job in track.ground.take(2):
        track.fail_job(job)
    track.ground.clock.move(10_000)

    assert track.open_gates().runs == 0
    assert (gate(track).unsettled, gate(track).opens_at) == (0, None)


def test_a_run_that_joins_in_time_closes_the_gate_and_restarts_its_timer(track: Track) -> None:
    track.start(batch="b")
    track.finish("request")
    track.ground.clock.move(800)
    track.start(batch="b")
    assert (gate(track).unsettled, gate(track).opens_at) == (1, None)
    track.ground.clock.move(200)
    assert track.open_gates().runs == 0

    track.finish("request")
    assert gate(track).opens_at == track.ground.clock.now() + seconds(900)
    track.ground.clock.move(900)
    assert track.open_gates().runs == 2


def test_runs_that_join_after_it_has_opened_form_the_next_round(track: Track) -> None:
    track.start(batch="b")
    track.finish("request")
    track.ground.clock.move(900)
    track.open_gates()
    track.start(batch="b")

    assert (gate(track, 2).unsettled, gate(track, 1).opened_at is not None) == (1, True)
    track.finish("download")
    track.finish("request")
    assert track.states(2) == {"request": "done", "download": "gated"}
    track.ground.clock.move(900)
    assert track.open_gates().runs == 1


def test_retries_wait_for_the_first_pass_and_then_for_their_own_delay(track: Track) -> None:
    track.start_many(3, batch="b")
    track.complete(track.ground.take(3))
    track.ground.clock.move(900)
    track.open_gates()
    first, second, third = track.ground.take(3)
    track.fail_job(first, retry_in=60)
    track.fail_job(second, retry_in=600)
    track.ground.clock.move(120)
    track.promote()
    assert track.ground.waits(first.id) == track.ground.waits(second.id) == "batch"
    assert track.ground.take(9) == []

    track.complete([third])
    assert track.ground.waits(first.id) == "ready"
    assert track.ground.waits(second.id) == "due"
    assert [job.id for job in track.ground.take(9)] == [first.id]


def test_a_retry_that_was_held_and_released_still_waits_for_the_first_pass(track: Track) -> None:
    track.start_many(2, batch="b")
    track.complete(track.ground.take(2))
    track.ground.clock.move(900)
    track.open_gates()
    first, second = track.ground.take(2)
    track.fail_job(first, retry_in=60)
    for verb in ("hold", "release"):
        track.ground.do(act, Act(verb=verb, jobs=[first.id], by="ann"))
    assert track.ground.waits(first.id) == "batch"

    track.complete([second])
    assert track.ground.waits(first.id) == "due"
    for verb in ("hold", "release"):
        track.ground.do(act, Act(verb=verb, jobs=[first.id], by="ann"))
    assert track.ground.waits(first.id) == "due"


def test_the_last_first_attempt_may_itself_be_the_one_that_is_retried(track: Track) -> None:
    track.start(batch="b")
    track.finish("request")
    track.ground.clock.move(900)
    track.open_gates()
    track.fail("download", retry_in=60)
    assert track.ground.waits(2) == "due"
    scheduled = track.run(1).steps[1].scheduled_for
    track.ground.clock.move(60)
    track.promote()
    track.fail("download", retry_in=60)
    assert track.ground.waits(2) == "due"
    assert track.run(1).steps[1].scheduled_for == scheduled


def test_a_cancelled_run_keeps_nobody_waiting(track: Track) -> None:
    track.start_many(2, batch="b")
    first, _ = track.ground.take(2)
    track.complete([first])
    track.do("cancel", 2)
    [running] = [job for job in [_] if job.run_id == 2]
    track.cancelled(running)

    assert (gate(track).unsettled, gate(track).waiting) == (0, 1)
    assert gate(track).opens_at is not None


def test_a_request_that_is_taken_up_later_forms_the_next_round(track: Track) -> None:
    track.start_many(2, batch="b")
    first, second = track.ground.take(2)
    track.complete([first])
    track.fail_job(second)
    track.ground.clock.move(900)
    track.open_gates()
    track.finish("download")
    track.requeue(2)
    track.finish("request")

    assert track.states(2) == {"request": "done", "download": "gated"}
    track.ground.clock.move(900)
    assert track.open_gates().runs == 1
    track.finish("download")
    assert track.run(2).state == "done"


def test_a_download_that_failed_is_taken_up_without_waiting_again(track: Track) -> None:
    track.start(batch="b")
    track.finish("request")
    track.ground.clock.move(900)
    track.open_gates()
    track.fail("download")
    track.requeue(1)

    assert track.states(1) == {"request": "done", "download": "queued"}
    track.finish("download")
    assert track.run(1).state == "done"


def test_without_a_batch_a_gate_is_only_a_delay(track: Track) -> None:
    run = track.start()
    track.finish("request")

    download = track.run(run).steps[1]
    assert (download.state, download.scheduled_for) == (
        "queued", track.ground.clock.now() + seconds(900)
    )  # fmt: skip


def test_a_batch_counts_its_runs_and_phases_without_looking_at_them(track: Track) -> None:
    track.start_many(7, batch="b")
    first, second, third, fourth, _ = track.ground.take(5)
    track.complete([first, second])
    track.fail_job(third)
    track.fail_job(fourth, retry_in=60)

    row = batch(track)
    assert (row.runs, row.running, row.done, row.failed) == (7, 6, 0, 1)
    assert row.phases == {
        "request": {"queued": 2, "running": 1, "retrying": 1, "done": 2, "dead": 1},
        "download": {"waiting": 4, "gated": 2, "skipped": 1},
    }
    assert list(row.phases) == ["request", "download"]


def test_a_retry_that_runs_is_running_and_retrying_again_when_it_fails(track: Track) -> None:
    track.start(batch="b")
    for _ in range(2):
        track.fail("request", retry_in=60)
        assert batch(track).phases["request"] == {"retrying": 1}
        track.ground.clock.move(60)
        track.promote()
    retry = track.take("request")
    assert batch(track).phases["request"] == {"running": 1}
    track.fail_job(retry)
    assert batch(track).phases["request"] == {"dead": 1}
    track.requeue(1)
    assert batch(track).phases["request"] == {"queued": 1}


def test_a_batch_is_of_one_pipeline(track: Track) -> None:
    track.start(batch="b")
    order = track.order([NewRun(batch="b")])
    other = order.__class__(
        definition=track.definition.__class__(name="q", steps=track.definition.steps),
        version=1,
        runs=order.runs,
    )
    with pytest.raises(WrongState, match="the batch 'b' is one of pipeline 'p'"):
        track.ground.do(start, other)


@pytest.mark.parametrize("n", [1_000])
def test_a_large_batch_goes_through_its_gate_without_losing_a_run(track: Track, n: int) -> None:
    track.start_many(n, batch="b")
    jobs = track.ground.take(n)
    for at in range(0, n, 250):
        track.complete(jobs[at : at + 250])
    assert (gate(track).unsettled, gate(track).waiting) == (0, n)
    track.ground.clock.move(900)
    while track.open_gates().runs:
        pass
    track.complete(track.ground.take(n))

    row = batch(track)
    assert (row.done, row.running) == (n, 0)
    assert row.phases == {"request": {"done": n}, "download": {"done": n}}


def test_batches_come_in_pages_the_newest_first(track: Track) -> None:
    for name in ("b", "a", "c"):
        track.start_many(1, batch=name)
    track.ground.clock.move(1)
    track.start_many(1, batch="d")

    def page(after: str | None) -> list[str]:
        rows = track.ground.ask(lambda connection: batch_pages.batch_rows(connection, 2, after))
        return [row.name for row in rows]

    assert [page(after) for after in (None, "a", "c", "gone")] == [["d", "a"], ["b", "c"], [], []]
