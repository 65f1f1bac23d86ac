"""A run is taken up again as S3 does: where it failed, earlier, all of it, or not at all."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.config.sections import Config, Task
from redrive.errors import NotAllowed, NotFound, PartialResults, TryLater, WrongState
from redrive.lifecycle import JobState
from redrive.templates import TemplateFailed
from redrived.store import redrives, tallies
from redrived.store.actions import Act, Acted, act
from redrived.store.run_actions import RunAct
from redrived.store.run_rehearsal import rehearse
from redrived.store.undo import undo
from support.ground import Ground
from support.runs import Track, seconds, step


@pytest.fixture
def track(ground: Ground) -> Track:
    return Track(ground, step("parse"), step("embed"), step("analyze"))


def test_a_run_resumes_where_it_failed_and_keeps_what_is_done(track: Track) -> None:
    run = track.start()
    track.finish("parse", result=1)
    track.fail("embed")
    track.requeue(run)

    record = track.run(run)
    assert track.states(run) == {"parse": "done", "embed": "queued", "analyze": "waiting"}
    assert (record.state, record.steps[0].result, record.finished_at) == ("running", 1, None)
    job = track.ground.job(2)
    assert (job.state, job.life, job.attempts) == (JobState.QUEUED, 2, 0)
    assert track.told(run)[-1] == "job_requeued"
    track.finish("embed")
    track.finish("analyze")
    assert track.run(run).state == "done"


def test_an_earlier_step_clears_only_what_follows(track: Track) -> None:
    run = track.start()
    track.finish("parse", result=1)
    track.finish("embed", result=2)
    track.fail("analyze")
    track.requeue(run, from_step="embed")

    assert track.states(run) == {"parse": "done", "embed": "queued", "analyze": "waiting"}
    assert [each.result for each in track.run(run).steps] == [1, None, None]
    track.finish("embed", result=3)
    assert track.run(run).steps[2].job == 3  # the one that failed, in another life
    assert track.ground.job(3).life == 2


def test_a_step_can_only_begin_behind_steps_that_succeeded(track: Track) -> None:
    run = track.start()
    track.fail("parse")
    with pytest.raises(WrongState, match="it cannot begin at analyze: embed has not succeeded"):
        track.requeue(run, from_step="analyze")
    with pytest.raises(NotFound, match="no step 'embedd'"):
        track.requeue(run, from_step="embedd")


def test_processing_everything_once_more_is_refused_while_there_are_results(track: Track) -> None:
    run = track.start()
    track.finish("parse")
    track.fail("embed")
    with pytest.raises(PartialResults, match="it has results of parse"):
        track.requeue(run, from_step="parse")
    track.requeue(run, from_step="parse", again=True)
    assert track.states(run)["parse"] == "queued"


def test_a_run_that_is_done_starts_over_only_when_confirmed_force_or_not(track: Track) -> None:
    run = track.start()
    for name in ("parse", "embed", "analyze"):
        track.finish(name)
    for force in (False, True):
        with pytest.raises(PartialResults):
            track.requeue(run, force=force)
    track.requeue(run, again=True)
    assert track.run(run).state == "running"


@pytest.mark.parametrize(
    ("verb", "from_step", "steps"),
    [
        ("requeue", None, ["embed", "analyze"]),
        ("requeue", "parse", ["parse", "embed", "analyze"]),
        ("requeue", "analyze", None),
        ("cancel", None, None),
        ("hold", None, None),
        ("discard", None, None),
    ],
)
def test_a_rehearsal_names_the_steps_or_the_refusal_and_changes_nothing(
    track: Track, verb: str, from_step: str | None, steps: list[str] | None
) -> None:
    run = track.start()
    track.finish("parse")
    track.fail("embed")
    before = track.run(run)
    wish = RunAct(verb=verb, runs=[run, 99], by="ann", from_step=from_step, again=True)
    ground = track.ground

    known, unknown = ground.ask(rehearse, ground.database, ground.clock.now(), wish)

    assert list(known.steps) == (steps or [])
    assert (known.refused is None) == (steps is not None)
    assert isinstance(unknown.refused, NotFound)
    assert track.run(run) == before


def test_a_run_keeps_to_cooldown_cap_and_permanent_failures(track: Track) -> None:
    run = track.start()
    track.fail("parse", reason="permanent")
    with pytest.raises(NotAllowed, match="permanent"):
        track.requeue(run)
    track.requeue(run, force=True)
    track.fail("parse")
    with pytest.raises(TryLater, match="requeued less than 60 s ago"):
        track.requeue(run)
    track.ground.clock.move(61)
    track.requeue(run)


@pytest.mark.parametrize("from_step", [None, "parse", "embed"])
def test_a_permanent_failure_is_refused_whichever_stage_is_chosen(
    track: Track, from_step: str | None
) -> None:
    run = track.start()
    track.finish("parse")
    track.fail("embed", reason="permanent")
    with pytest.raises(NotAllowed, match="the failure is permanent"):
        track.requeue(run, from_step=from_step)


def test_data_is_cleared_before_a_step_is_run_again(ground: Ground) -> None:
    track = Track(ground, step("parse", clear="other"), step("embed"))
    run = track.start()
    track.fail("parse")
    track.requeue(run)
    assert track.states(run)["parse"] == "clearing"
    [clearing] = ground.take()
    assert (clearing.task, clearing.step) == ("other", "parse")
    track.complete([clearing])

    assert track.states(run)["parse"] == "queued"
    assert ground.job(1).life == 2
    track.finish("parse")
    assert track.states(run)["embed"] == "queued"


def test_a_step_that_lives_again_after_its_data_was_cleared_says_who_asked(
    ground: Ground,
) -> None:
    track = Track(ground, step("parse", clear="other"))
    run = track.start()
    track.fail("parse")
    track.requeue(run, data={"reason": "mended"})
    track.complete(ground.take())

    [requeued] = [event for event in ground.events() if event.type == "job_requeued"]
    assert (requeued.job, requeued.data["by"], requeued.data["reason"]) == (1, "ann", "mended")


def test_the_reason_for_taking_up_a_run_is_in_the_log(track: Track) -> None:
    run = track.start()
    track.fail("parse")
    track.requeue(run, data={"reason": "mended"})
    [requeued] = track.ground.events(1)[-1:]
    assert (requeued.type, requeued.data["reason"]) == ("job_requeued", "mended")

    track.finish("parse")
    track.finish("embed")
    track.finish("analyze")
    track.requeue(run, again=True, force=True, data={"reason": "once more"})
    begun = track.ground.events()[-1]
    assert (begun.type, begun.data) == ("step_started", {"by": "ann", "reason": "once more"})


def test_the_reason_for_cancelling_a_run_is_told_of_the_job_that_runs(track: Track) -> None:
    run = track.start()
    job = track.take("parse")
    track.do("cancel", run, data={"reason": "wrong file"})
    track.cancelled(job)

    [cancelled] = [event for event in track.ground.events(1) if event.type == "job_cancelled"]
    assert cancelled.data["reason"] == "wrong file"


def test_a_step_whose_data_was_cleared_still_waits_for_its_time(ground: Ground) -> None:
    track = Track(ground, step("request"), step("download", delay=900, clear="other"))
    run = track.start()
    _finish_both(track)
    track.requeue(run, again=True)
    track.finish("request")
    due = ground.clock.now() + seconds(900)
    ground.clock.move(5)
    track.complete(ground.take())  # the clearing

    assert track.run(run).steps[1].scheduled_for == due
    assert ground.take() == []
    ground.clock.move(895)
    track.promote()
    track.finish("download")
    assert track.run(run).state == "done"


@pytest.mark.parametrize("clear", [None, "other"])
def test_a_step_that_was_cancelled_before_its_time_still_waits_for_it(
    ground: Ground, clear: str | None
) -> None:
    track = Track(ground, step("request"), step("download", delay=900, clear=clear))
    run = track.start()
    track.finish("request")
    due = ground.clock.now() + seconds(900)
    track.do("cancel", run)
    ground.clock.move(100)
    track.requeue(run)

    assert track.states(run)["download"] == "queued"
    assert track.run(run).steps[1].scheduled_for == due
    assert ground.take() == []
    ground.clock.move(800)
    track.promote()
    track.finish("download")
    assert track.run(run).state == "done"


def test_a_step_that_has_begun_is_taken_up_without_its_delay(ground: Ground) -> None:
    track = Track(ground, step("request"), step("download", delay=900))
    run = track.start()
    track.finish("request")
    ground.do(act, Act(verb="run-now", jobs=[2], by="ann"))
    track.fail("download")
    track.requeue(run)
    track.finish("download")


def test_a_step_that_was_cancelled_at_its_gate_waits_there_again(ground: Ground) -> None:
    download = step("download", gate="batch", delay=900)
    track = Track(ground, step("request"), download)
    run = _requested_again_behind_its_gate(track)
    track.do("cancel", run)
    ground.clock.move(61)
    track.requeue(run)

    assert track.states(run)["download"] == "gated"


def test_a_step_whose_data_could_not_be_cleared_is_not_sent_back_to_its_gate(
    ground: Ground,
) -> None:
    download = step("download", gate="batch", delay=900, clear="other")
    track = Track(ground, step("request"), download)
    run = _requested_again_behind_its_gate(track)
    ground.clock.move(900)
    track.open_gates()
    track.fail_job(*ground.take())
    track.requeue(run)

    assert track.states(run)["download"] == "clearing"


def _requested_again_behind_its_gate(track: Track) -> int:
    run = track.start(batch="b")
    track.finish("request")
    track.ground.clock.move(900)
    track.open_gates()
    track.finish("download")
    track.requeue(run, again=True)
    track.finish("request")
    return run


def _finish_both(track: Track) -> None:
    track.finish("request")
    track.ground.clock.move(900)
    track.promote()
    track.finish("download")


def test_a_key_that_a_result_makes_never_keeps_that_result_from_the_store(ground: Ground) -> None:
    keyed = Task(command=["true"], concurrency=1, concurrency_key="{{ args.of }}")
    config = Config(tasks={"work": Task(command=["true"]), "other": keyed})
    second = step("second", task="other", args={"of": "{{ steps.first.result }}"})
    track = Track(ground, step("first"), second, config=config)
    run = track.start()
    track.finish("first", result="a\0b")
    track.finish("second")
    assert track.run(run).state == "done"


# ---- by one of its jobs --------------------------------------------------------------------


def requeue_job(track: Track, job: int, **more: Any) -> Acted:
    [acted] = track.ground.do(act, Act(verb="requeue", jobs=[job], by="ann", **more))
    return acted


@pytest.fixture
def failed(ground: Ground) -> Track:
    """Run 1 has failed at job 2, whose data must be cleared before it is run again."""
    track = Track(ground, step("parse"), step("embed", clear="other"))
    track.start()
    track.finish("parse")
    track.fail("embed")
    return track


def test_data_is_cleared_before_a_job_is_run_again(failed: Track) -> None:
    assert requeue_job(failed, 2, force=True, data={"redrive": 7}).state == "clearing"
    assert failed.states(1) == {"parse": "done", "embed": "clearing"}
    [clearing] = failed.ground.take()
    assert (clearing.task, failed.ground.job(2).state) == ("other", JobState.DEAD)
    failed.complete([clearing])

    job = failed.ground.job(2)
    assert (job.state, job.life, job.attempts) == (JobState.QUEUED, 2, 0)
    [requeued] = [event for event in failed.ground.events(2) if event.type == "job_requeued"]
    assert requeued.data == {
        "was": "dead", "life": 2, "by": "ann", "redrive": 7, "forced": True
    }  # fmt: skip
    failed.finish("embed")
    assert failed.run(1).state == "done"


def test_a_job_whose_data_is_being_cleared_is_not_requeued_twice(failed: Track) -> None:
    requeue_job(failed, 2)
    refused = requeue_job(failed, 2, force=True).refused
    assert isinstance(refused, WrongState)
    assert str(refused).startswith("it is requeued already: job 3 clears the data of its step")
    failed.complete(failed.ground.take())
    failed.finish("embed")
    assert failed.run(1).state == "done"


def test_a_job_whose_data_could_not_be_cleared_stays_dead_and_can_be_requeued(
    failed: Track,
) -> None:
    requeue_job(failed, 2)
    failed.fail_job(*failed.ground.take())

    assert (failed.run(1).state, failed.ground.job(2).life) == ("failed", 1)
    assert failed.run(1).steps[1].why == "clearing its data did not succeed: job 3 is dead"
    requeue_job(failed, 2)
    failed.complete(failed.ground.take())
    failed.finish("embed")
    assert failed.run(1).state == "done"


def test_a_job_that_was_cancelled_before_its_time_still_waits_for_it(ground: Ground) -> None:
    track = Track(ground, step("request"), step("download", delay=900, clear="other"))
    run = track.start()
    track.finish("request")
    ground.do(act, Act(verb="cancel", jobs=[2], by="ann"))

    assert requeue_job(track, 2).state == "queued"
    assert (track.states(run)["download"], ground.take()) == ("queued", [])
    assert ground.ask(tallies.read_with_waits)[1] == {"default": {"work": {"scheduled": 1}}}
    ground.clock.move(900)
    track.promote()
    track.finish("download")
    assert track.run(run).state == "done"


def test_a_job_is_not_run_beside_those_before_it_that_are_run_again(track: Track) -> None:
    run = track.start()
    track.finish("parse")
    track.fail("embed")
    track.requeue(run, from_step="parse", again=True)

    refused = requeue_job(track, 2, force=True).refused
    assert str(refused).startswith("its run is on the way to its step embed again")
    track.finish("parse")
    track.finish("embed")
    assert track.run(run).steps[1].job == 2


def test_a_job_is_not_run_while_one_before_it_has_failed_or_was_cancelled(track: Track) -> None:
    run = track.start()
    track.finish("parse")
    track.fail("embed")
    track.requeue(run, from_step="parse", again=True)
    track.do("cancel", run)
    [parse, embed] = (track.run(run).steps[place].job for place in (0, 1))
    assert parse is not None
    assert embed is not None

    refused = requeue_job(track, embed, force=True).refused
    assert str(refused).startswith("it cannot begin at embed: parse has not succeeded")
    requeue_job(track, parse, force=True)
    track.fail("parse")
    refused = requeue_job(track, embed, force=True).refused
    assert str(refused).startswith("it cannot begin at embed: parse has not succeeded")


def test_a_job_is_not_run_while_another_run_has_the_key_of_its_own(track: Track) -> None:
    track.start(key="k")
    track.fail("parse")
    track.start(key="k")
    assert str(requeue_job(track, 1).refused).startswith("r2, with the same key 'k', is running")

    track.fail("parse")
    requeued, refused = track.ground.do(act, Act(verb="requeue", jobs=[1, 2], by="ann"))
    assert requeued.state == "queued"
    assert str(refused.refused).startswith("r1, with the same key 'k', is running")


def test_what_was_to_clear_data_is_not_run_again_by_itself(failed: Track) -> None:
    requeue_job(failed, 2)
    failed.fail_job(*failed.ground.take())

    cleared, clears = failed.ground.do(act, Act(verb="requeue", jobs=[2, 3], by="ann", force=True))
    assert cleared.state == "clearing"
    assert str(clears.refused).startswith("it was to clear the data of a step")
    [clearing] = failed.ground.take()
    assert clearing.id == 4


def test_a_step_whose_clearing_would_have_no_key_is_not_run_again(ground: Ground) -> None:
    keyed = Task(command=["true"], concurrency=1, concurrency_key="{{ args.tenant }}")
    config = Config(tasks={"work": Task(command=["true"]), "other": keyed})
    track = Track(ground, step("parse"), step("embed", clear="other"), config=config)
    run = track.start()
    track.finish("parse")
    track.fail("embed")

    for from_step in (None, "parse"):
        with pytest.raises(TemplateFailed, match="no attribute 'tenant'"):
            track.requeue(run, from_step=from_step, again=True)
    assert isinstance(requeue_job(track, 2).refused, TemplateFailed)
    assert track.run(run).state == "failed"


def test_a_job_whose_data_is_being_cleared_is_not_discarded(failed: Track) -> None:
    requeue_job(failed, 2)
    [acted] = failed.ground.do(act, Act(verb="discard", jobs=[2], by="ann"))
    assert str(acted.refused).startswith("it is requeued already: job 3 clears the data")


# ---- by a redrive --------------------------------------------------------------------------


@pytest.fixture
def redrive(failed: Track) -> int:
    """It has requeued job 2, whose data is to be cleared first."""
    chosen = failed.ground.do(redrives.create, redrives.NewRedrive(by="ann", ids=[2]))
    assert chosen.id is not None
    failed.ground.do(redrives.requeue_portion, redrives.Portion(redrive=chosen.id, n=9, by="ann"))
    return chosen.id


def test_a_redrive_counts_a_job_when_it_ends_and_not_when_its_data_is_cleared(
    failed: Track, redrive: int
) -> None:
    assert failed.ground.ask(redrives.ended) == []
    failed.complete(failed.ground.take())
    assert failed.ground.ask(redrives.ended) == []
    failed.finish("embed")
    assert failed.ground.ask(redrives.ended) == [redrives.Settled(redrive, 2, "done")]


def test_a_job_whose_data_could_not_be_cleared_has_failed_for_its_redrive(
    failed: Track, redrive: int
) -> None:
    failed.fail_job(*failed.ground.take())
    assert failed.ground.ask(redrives.ended) == [redrives.Settled(redrive, 2, "dead")]


def test_a_job_that_is_gone_by_now_has_failed_for_its_redrive(failed: Track, redrive: int) -> None:
    failed.complete(failed.ground.take())
    failed.fail("embed")
    failed.ground.do(act, Act(verb="discard", jobs=[2], by="ann"))
    assert failed.ground.ask(redrives.ended) == [redrives.Settled(redrive, 2, "dead")]


def test_a_redrive_that_is_undone_clears_nothing_more(failed: Track, redrive: int) -> None:
    assert failed.ground.do(undo, (redrive, "ann")) == 1
    assert failed.ground.take() == []
    assert (failed.run(1).state, failed.ground.job(2).state) == ("cancelled", JobState.DEAD)
    requeue_job(failed, 2)
    failed.complete(failed.ground.take())
    failed.finish("embed")
    assert failed.run(1).state == "done"


def test_what_is_being_cleared_when_a_redrive_is_undone_goes_on(
    failed: Track, redrive: int
) -> None:
    clearing = failed.ground.take()
    with pytest.raises(WrongState, match="nothing to take back"):
        failed.ground.do(undo, (redrive, "ann"))
    failed.complete(clearing)
    failed.finish("embed")
    assert failed.ground.ask(redrives.ended) == [redrives.Settled(redrive, 2, "done")]


def test_an_undo_leaves_to_the_redrive_what_is_being_cleared(failed: Track) -> None:
    failed.start()
    failed.finish("parse")
    failed.fail("embed")
    ground = failed.ground
    chosen = ground.do(redrives.create, redrives.NewRedrive(by="ann"))
    assert (chosen.id, chosen.total) == (1, 2)
    ground.do(redrives.requeue_portion, redrives.Portion(redrive=1, n=1, by="ann"))
    ground.take()

    assert ground.do(undo, (1, "ann")) == 0
    assert ground.ask(redrives.under_way, 1) == [2]
