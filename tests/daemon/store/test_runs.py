"""Runs go through their pipelines: in S2's order, whatever is asked."""

from __future__ import annotations

import sys
from collections import Counter

import pytest

from redrive.errors import UsageProblem
from redrived.store.actions import Act, act
from support.ground import Ground
from support.runs import Track, seconds, step


@pytest.fixture
def track(ground: Ground) -> Track:
    return Track(ground, step("parse"), step("embed"), step("analyze"))


def test_a_run_begins_with_its_first_step(track: Track) -> None:
    run = track.start(args={"path": "a"})

    assert track.states(run) == {"parse": "queued", "embed": "waiting", "analyze": "waiting"}
    assert track.told(run) == ["execution_started", "step_started"]
    [job] = track.ground.take()
    assert (job.step, job.run_id, job.pinned) == ("parse", 1, "p@1")
    assert track.ground.job(job.id).args == {"path": "a"}


def test_a_step_that_succeeds_enqueues_the_next_in_the_same_commit(track: Track) -> None:
    run = track.start()
    track.finish("parse", result={"pages": 3})

    assert track.states(run) == {"parse": "done", "embed": "queued", "analyze": "waiting"}
    record = track.run(run)
    assert (record.last_completed, record.steps[0].result) == ("parse", {"pages": 3})
    assert track.told(run)[-2:] == ["action_completed", "step_started"]


def test_the_last_step_completes_the_execution(track: Track) -> None:
    run = track.start()
    for name in ("parse", "embed", "analyze"):
        track.finish(name)

    record = track.run(run)
    assert (record.state, record.finished_at) == ("done", track.ground.clock.now())
    assert track.told(run)[-2:] == ["action_completed", "execution_completed"]


def test_a_failed_step_fails_the_run_in_the_order_of_events_of_s2(track: Track) -> None:
    run = track.start()
    track.finish("parse")
    track.fail("embed")

    assert track.told(run)[-4:] == [
        "action_error",
        "step_retry_exhausted",
        "step_failed_terminal",
        "execution_failed",
    ]
    assert track.run(run).state == "failed"
    assert track.states(run) == {"parse": "done", "embed": "dead", "analyze": "skipped"}
    assert track.run(run).steps[2].why == "Embed failed; analyze skipped"


def test_a_retry_changes_nothing_about_the_run(track: Track) -> None:
    run = track.start()
    track.fail("parse", retry_in=60)

    assert track.run(run).state == "running"
    assert track.states(run)["parse"] == "retry"


def test_a_delay_counts_from_the_success_before_it_and_stays(ground: Ground) -> None:
    track = Track(ground, step("request"), step("download", delay=900))
    run = track.start()
    track.finish("request")
    due = ground.clock.now() + seconds(900)

    download = track.run(run).steps[1]
    assert (download.state, download.scheduled_for) == ("queued", due)
    assert ground.take() == []
    ground.clock.move(900)
    track.promote()
    track.fail("download", retry_in=60)
    assert track.run(run).steps[1].scheduled_for == due


def test_arguments_are_templates_over_what_came_before(ground: Ground) -> None:
    args = {"n": "{{ steps.count.result.n }}", "who": "{{ run }} of {{ batch }}: {{ args.name }}"}
    track = Track(ground, step("count"), step("use", args=args))
    track.start(args={"name": "x"}, batch="b")
    track.finish("count", result={"n": 3})

    [job] = ground.take()
    assert ground.job(job.id).args == {"n": 3, "who": "r1 of b: x"}


def test_arguments_that_cannot_be_made_fail_the_step_and_say_why(ground: Ground) -> None:
    track = Track(ground, step("a", args={"n": "{{ args.missing }}"}), step("b"))
    run = track.start()

    record = track.run(run)
    assert (record.state, record.steps[0].state) == ("failed", "dead")
    assert "missing" in (record.steps[0].why or "")
    assert track.told(run) == ["execution_started", "step_failed_terminal", "execution_failed"]


def test_a_step_whose_condition_does_not_hold_is_skipped(ground: Ground) -> None:
    track = Track(ground, step("a"), step("b", when="steps.a.result.go"), step("c"))
    run = track.start()
    track.finish("a", result={"go": False})

    assert track.states(run) == {"a": "done", "b": "skipped", "c": "queued"}


def test_branches_go_side_by_side_and_meet_again(ground: Ground) -> None:
    track = Track(
        ground,
        step("a"),
        step("left", needs=["a"]),
        step("right", needs=["a"]),
        step("join", needs=["left", "right"]),
    )
    run = track.start()
    track.finish("a")
    assert track.states(run) == {
        "a": "done", "left": "queued", "right": "queued", "join": "waiting"
    }  # fmt: skip
    left, right = ground.take(2)
    track.complete([left, right])
    assert track.states(run)["join"] == "queued"


def test_what_its_steps_measured_is_kept_with_the_run(track: Track) -> None:
    run = track.start()
    track.finish("parse", metrics={"files": 2, "errors": 0})
    track.finish("embed", metrics={"errors": 1})

    assert track.run(run).metrics == {"files": 2, "errors": 1}


def test_nothing_stays_of_what_a_failed_attempt_measured(track: Track) -> None:
    run = track.start()
    track.finish("parse", metrics={"files": 2})
    failed = {"metrics": '{"error_type": "Timeout", "seconds": 3}'}
    track.fail("embed", retry_in=0, **failed)
    assert track.run(run).metrics == {"files": 2, "error_type": "Timeout", "seconds": 3}
    track.promote()
    track.finish("embed", metrics={"seconds": 1})
    assert track.run(run).metrics == {"files": 2, "seconds": 1}


def test_a_step_says_which_retry_it_is_at_and_why_it_is_dead(ground: Ground) -> None:
    track = Track(ground, step("parse", retry=3))
    run = track.start()

    def why() -> str | None:
        return track.run(run).steps[0].why

    track.fail("parse", retry_in=0)
    assert why() == "Retrying (attempt 1/2)"
    track.promote()
    job = track.take("parse")
    assert why() == "Retrying (attempt 1/2)"
    track.fail_job(job, reason="exhausted")
    assert why() == "max retries exhausted"
    track.requeue(run)
    assert why() is None


def test_thousands_of_runs_start_in_one_commit(track: Track) -> None:
    begun = track.start_many(2_000)

    assert [each.id for each in begun] == list(range(1, 2_001))
    assert track.ground.counts() == {"queued": 2_000}


def test_a_key_that_is_on_its_way_starts_no_second_run(track: Track) -> None:
    first = track.start(key="doc-1")
    assert track.start(key="doc-1") == first
    for name in ("parse", "embed", "analyze"):
        track.finish(name)
    assert track.start(key="doc-1") != first


# ---- cancel, requeue, discard --------------------------------------------------------------


def test_cancelling_a_waiting_job_cancels_its_run(track: Track) -> None:
    run = track.start()
    track.ground.do(act, Act(verb="cancel", jobs=[1], by="ann"))

    assert track.run(run).state == "cancelled"
    assert track.run(run).steps[1].why == "Parse cancelled; embed skipped"


def test_requeuing_the_dead_job_takes_its_run_up_again(track: Track) -> None:
    run = track.start()
    track.fail("parse")
    track.ground.do(act, Act(verb="requeue", jobs=[1], by="ann"))

    assert track.run(run).state == "running"
    assert track.states(run) == {"parse": "queued", "embed": "waiting", "analyze": "waiting"}
    for name in ("parse", "embed", "analyze"):
        track.finish(name)
    assert track.run(run).state == "done"


def test_a_discarded_job_leaves_its_step_as_it_ended(track: Track) -> None:
    run = track.start()
    track.fail("parse")
    track.ground.do(act, Act(verb="discard", jobs=[1], by="ann"))

    parse = track.run(run).steps[0]
    assert (parse.state, parse.job) == ("dead", None)
    track.requeue(run)
    assert track.run(run).steps[0].job == 2


def test_cancelling_a_run_cancels_what_waits_and_what_has_a_job(track: Track) -> None:
    run = track.start()
    track.finish("parse")
    track.do("cancel", run)

    assert track.run(run).state == "cancelled"
    assert track.states(run) == {"parse": "done", "embed": "cancelled", "analyze": "cancelled"}
    assert track.ground.counts() == {"done": 1, "cancelled": 1}
    track.requeue(run)
    assert track.states(run) == {"parse": "done", "embed": "queued", "analyze": "waiting"}


def test_a_running_job_of_a_cancelled_run_is_to_be_ended(track: Track) -> None:
    run = track.start()
    [job] = track.ground.take()
    acted = track.do("cancel", run)

    assert [each.running for each in acted.running] == [job.lease]
    assert track.run(run).state == "running"
    track.cancelled(job)
    assert track.run(run).state == "cancelled"


def test_a_result_that_comes_late_moves_no_run(track: Track) -> None:
    run = track.start()
    [job] = track.ground.take()
    track.cancelled(job)
    track.complete([job])

    assert track.run(run).state == "cancelled"
    assert "late_result" in track.told(run)


def test_runs_are_listed_newest_first_page_by_page(track: Track) -> None:
    for _ in range(5):
        track.start()
    track.fail("parse")

    first = track.page(limit=3)
    assert [run.id for run in first.runs] == ["r5", "r4", "r3"]
    assert [run.id for run in track.page(limit=3, after=first.after).runs] == ["r2", "r1"]
    assert [run.id for run in track.page("state:failed").runs] == ["r1"]
    with pytest.raises(UsageProblem, match="`nope` is no value of `state`"):
        track.page("state:failed,nope")
    with pytest.raises(UsageProblem, match="unknown key `colour`"):
        track.page("colour:red")


def test_a_run_of_many_steps_is_cancelled_at_a_cost_that_grows_with_their_number(
    ground: Ground,
) -> None:
    few, many = (_calls_to_cancel(ground, n) for n in (100, 800))
    assert many < 10 * few


def _calls_to_cancel(ground: Ground, n: int) -> int:
    """How many functions are called to cancel a run of so many steps side by side."""
    track = Track(ground, *[step(f"s{place}", needs=[]) for place in range(n)])
    run = track.start()
    calls = Counter[str]()
    sys.setprofile(lambda _frame, event, _what: calls.update([event]))
    try:
        track.do("cancel", run)
    finally:
        sys.setprofile(None)
    assert track.run(run).state == "cancelled"
    return calls["call"]
