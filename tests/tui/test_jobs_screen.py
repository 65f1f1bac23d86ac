"""The list of jobs: filter, sort, mark, act; nothing moves under a hand that chooses."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace
from textual.events import MouseEvent, MouseScrollDown, MouseScrollUp

from redrive.clock import SECOND
from redrive.lifecycle import DEAD, DONE, LEASED
from redrive.models import Event, Job, Progress
from redrive.protocol.announcements import JobVitals
from redrive.protocol.commands import Act, Outcome
from redrive.protocol.queries import ListJobs
from redrive_tui.screens.jobs import JobsPane
from redrive_tui.widgets import filter_bar
from redrive_tui.widgets.filter_bar import REST
from redrive_tui.widgets.table import Table
from support import incident
from support.daemon import soon
from support.recorded import Gate
from support.stage import Stage, on_stage


def jobs(stage: Stage) -> JobsPane:
    pane = stage.console.pane
    assert isinstance(pane, JobsPane)
    return pane


def cursor_on(stage: Stage) -> int | None:
    job = jobs(stage).table.current
    return job.id if job else None


async def news(stage: Stage, *new: Job) -> None:
    """Something happens in the daemon, and the console hears of it."""
    stage.source.jobs += new
    mirror = stage.console.mirror
    stage.clock.move(2)
    mirror.apply([Event(seq=mirror.seq + 1, at=incident.NOW, type="step_started", job=1)])
    await stage.settle()


async def test_it_opens_unfiltered_newest_first_with_the_cursor_on_the_first_row() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        assert "all jobs" in stage.text
        assert "240 jobs" in stage.text
        assert stage.line_with(">").startswith(" > 240")


async def test_a_running_job_shows_how_far_it_is_between_two_readings() -> None:
    async with on_stage() as stage:
        running = Job(
            id=241,
            task="long",
            queue="mail",
            state=LEASED,
            node="w1",
            started_at=incident.NOW,
            progress=Progress(done=1, total=100),
        )
        await stage.press("2")
        await news(stage, running)
        await stage.press("g")
        assert "1.0%" in stage.line_with(" long ")

        beat = JobVitals(job=241, heartbeat_at=None, progress=(50.0, 100.0, None))
        stage.console.mirror.feel(incident.vitals("w1", beat))
        stage.clock.move(2)
        await stage.settle()

        assert "50%" in stage.line_with(" long ")


async def test_a_row_that_is_read_after_the_picture_was_taken_has_lasted_nothing() -> None:
    async with on_stage() as stage:
        later = incident.NOW + 30 * SECOND
        stage.source.jobs += [
            Job(id=241, task="long", queue="mail", state=LEASED, started_at=later),
            Job(id=242, task="short", queue="mail", state=DONE, finished_at=later),
        ]
        await stage.press("2")
        assert " 0.0s " in stage.line_with(" long ")
        assert " 0s ago " in stage.line_with(" short ")


async def test_the_wheel_takes_the_cursor_along() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        table = jobs(stage).table
        table.post_message(wheel(table, MouseScrollDown))
        await stage.settle()
        top = table.scroll_offset.y
        assert top > 0
        assert cursor_on(stage) == 240 - top

        await news(stage, *(Job(id=id, task="new", queue="mail") for id in range(241, 245)))
        assert cursor_on(stage) == 240 - top

        await stage.press("G")
        table.post_message(wheel(table, MouseScrollUp))
        await stage.settle()
        assert stage.line_with(" > ").strip().startswith(f"> {cursor_on(stage)}")


def wheel(table: Table, turned: type[MouseEvent]) -> MouseEvent:
    return turned(table, 5, 5, 0, 0, 0, shift=False, meta=False, ctrl=False)


async def test_the_cursor_stays_on_its_job_when_newer_ones_arrive() -> None:
    async with on_stage() as stage:
        await stage.press("2", "down", "down")
        place = stage.grid.index(stage.line_with("> 238"))

        await news(stage, *(Job(id=id, task="new", queue="mail") for id in range(241, 260)))

        assert cursor_on(stage) == 238
        assert stage.grid.index(stage.line_with("> 238")) == place


async def test_a_key_is_refused_once_when_the_job_under_the_cursor_has_left_the_list() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        jobs(stage).visit("state:dead")
        await stage.settle()
        assert cursor_on(stage) == 235
        stage.source.jobs = [
            replace(job, state=DONE) if job.id == 235 else job for job in stage.source.jobs
        ]
        await news(stage)
        await news(stage)  # however long ago it left

        await stage.press("r")
        assert stage.source.commanded == []
        assert "235 is no longer in this list" in stage.toasts[-1]

        await stage.press("r")
        assert stage.source.commanded == [Act(verb="requeue", ids=["227"], expected="dead")]


async def test_a_job_that_the_operator_sent_away_is_not_missed() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        jobs(stage).visit("state:dead")
        await stage.settle()
        await stage.press("r")
        await news(stage)
        await stage.press("r")
        assert stage.source.commanded == [
            Act(verb="requeue", ids=[job], expected="dead") for job in ("235", "227")
        ]


async def test_a_filter_is_typed_completed_and_applied() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash")
        await stage.type("state:dea")
        assert "dead" in stage.text
        await stage.press("tab", "enter")

        assert "/ state:dead" in stage.text
        assert "30 jobs" in stage.text
        assert {job.state for job in jobs(stage).table.pages.known(range(30))} == {DEAD}


async def test_while_a_filter_is_typed_the_keys_of_its_field_are_told() -> None:
    async with on_stage(size=(60, 24)) as stage:
        await stage.press("2", "slash")
        assert stage.grid[-1] == " ⏎ use  tab complete  ↑ earlier  ? explain  esc leave"
        await stage.press("escape")
        assert "x why" in stage.grid[-1]


async def test_a_filter_that_makes_no_sense_is_pointed_at() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash")
        await stage.type("statte:dead")
        await stage.press("enter")

        assert "^" in stage.text
        assert "statte" in stage.text
        assert jobs(stage).bar.text != "statte:dead"


async def test_earlier_filters_come_back_with_the_arrow() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash")
        await stage.type("queue:mail")
        await stage.press("enter", "escape", "slash", "up", "enter")
        assert "/ queue:mail" in stage.text


async def test_only_the_newest_of_many_filters_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(filter_bar, "EARLIER", 2)
    async with on_stage() as stage:
        await stage.press("2")
        for name in ("mail", "bulk", "manual"):
            await stage.press("slash", "ctrl+u")
            await stage.type(f"queue:{name}")
            await stage.press("enter", "escape")
        await stage.press("slash", "up", "up", "up", "enter")
        assert "/ queue:bulk" in stage.text


async def test_a_question_mark_in_the_filter_asks_for_its_grammar() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash", "question_mark")
        assert "HOW TO WRITE A FILTER" in stage.text


async def test_escape_takes_one_step_back_at_a_time() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        jobs(stage).visit("state:dead")
        await stage.settle()
        await stage.press("space", "slash")

        await stage.press("escape")  # the input
        assert not jobs(stage).bar.is_open
        await stage.press("escape")  # the marks
        assert not jobs(stage).table.has_marks
        await stage.press("escape")  # the filter
        assert "all jobs" in stage.text
        await stage.press("escape")  # the screen
        assert stage.console.pane.context == "overview"


async def test_marking_freezes_the_list_and_counts_what_waits() -> None:
    async with on_stage() as stage:
        await stage.press("2", "space")
        assert "1 marked" in stage.text

        await news(stage, Job(id=241, task="new", queue="mail"))

        assert "240 jobs" in stage.text
        assert "1 change waiting (u shows)" in stage.text
        await stage.press("u")
        assert "241 jobs" in stage.text
        assert "1 marked" in stage.text


async def test_nothing_moves_under_a_question() -> None:
    async with on_stage() as stage:
        await stage.press("2", "down", "down", "K")
        await news(stage, Job(id=241, task="new", queue="mail"))
        assert "240 jobs" in stage.text
        await stage.press("escape")
        await stage.pass_time(2)
        assert "241 jobs" in stage.text


async def test_another_order_of_a_frozen_list_is_another_picture() -> None:
    async with on_stage() as stage:
        await stage.press("2", "u")
        await stage.pass_time(60)
        assert "frozen 1m00s" in stage.text
        await stage.press("S")
        assert "frozen 0.0s" in stage.text


async def test_a_range_is_marked_by_moving() -> None:
    async with on_stage() as stage:
        await stage.press("2", "v", "down", "down", "v")
        assert "3 marked" in stage.text
        assert sorted(jobs(stage).table.marks) == [238, 239, 240]


async def test_a_range_is_over_where_the_list_moves_under_it() -> None:
    async with on_stage() as stage:
        await stage.press("2", "v", "down")
        await news(stage, Job(id=241, task="new", queue="mail"))
        await stage.press("u", "down")
        assert sorted(jobs(stage).table.marks) == [239, 240]


async def test_a_range_is_marked_whole_although_its_rows_were_never_seen() -> None:
    source = incident.source()
    source.jobs = [Job(id=id, task="t", queue="mail") for id in range(1, 1001)]
    async with on_stage(source) as stage:
        await stage.press("2", "v", "G")
        assert "1,000 marked" in stage.text
        await stage.press("v")
        assert len(jobs(stage).table.marks) == 1000


async def test_marks_that_the_filter_hides_are_counted() -> None:
    async with on_stage() as stage:
        await stage.press("2", "space", "space", "space")
        jobs(stage).visit("state:retry")
        await stage.settle()
        assert "3 marked · 2 hidden by the filter" in stage.text


async def test_any_number_of_marks_that_the_filter_hides_is_counted() -> None:
    source = incident.source()
    source.jobs = [Job(id=id, task="t", queue="mail", state=DONE) for id in range(1, 1001)]
    async with on_stage(source) as stage:
        await stage.press("2", "v", "G", "v")
        jobs(stage).visit("state:dead")
        await stage.settle()
        assert "1,000 marked · 1,000 hidden by the filter" in stage.text


async def test_a_hidden_mark_that_is_taken_off_is_no_longer_counted() -> None:
    async with on_stage() as stage:
        await stage.press("2", "space", "space", "space")
        jobs(stage).visit("state:retry")
        await stage.settle()
        stage.source.outcomes["239"] = Outcome(id="239", done=False)
        await stage.press("c")
        stage.clock.move(1)
        await stage.press("y")
        assert stage.source.commanded == [Act(verb="cancel", ids=["240", "239", "238"])]
        assert "1 marked · 1 hidden by the filter" in stage.text


async def test_rows_of_the_last_list_are_not_shown_for_those_of_the_next() -> None:
    source = incident.source()
    source.jobs += [Job(id=id, task="t", queue="mail") for id in range(241, 5001)]
    async with on_stage(source) as stage:
        await stage.press("2")
        gate = source.gates[ListJobs] = Gate()
        jobs(stage).visit("state:dead")
        await gate.reached.wait()
        await stage.pilot.press("G")  # to rows of the list that goes
        assert "reading" in stage.line_with("/ state:dead")
        gate.opened.set()
        await stage.settle()
        assert cursor_on(stage) == 235
        assert "30 jobs" in stage.line_with("/ state:dead")


async def test_another_list_that_could_not_be_read_is_read_as_soon_as_it_can_be() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        stage.source.lost = True
        jobs(stage).visit("state:dead")
        await stage.settle()
        assert "reading" in stage.line_with("/ state:dead")
        stage.source.lost = False
        await stage.pass_time(1)
        assert "30 jobs" in stage.line_with("/ state:dead")
        assert cursor_on(stage) == 235


async def test_a_verb_on_marks_asks_with_their_states_and_says_what_is_hidden() -> None:
    async with on_stage() as stage:
        await stage.press("2", "space", "space", "space")
        jobs(stage).visit("state:retry")
        await stage.settle()
        await stage.press("c")

        assert "cancel 3 jobs" in stage.text
        assert "1  ↻ retrying" in stage.text
        assert "hidden by the filter" in stage.text
        assert "redrive cancel 240 239 238" in stage.text


async def test_what_was_done_loses_its_mark() -> None:
    async with on_stage() as stage:
        await stage.press("2", "space", "space", "c")
        stage.clock.move(1)
        await stage.press("y")
        await stage.settle()

        assert stage.source.commanded == [Act(verb="cancel", ids=["240", "239"])]
        assert not jobs(stage).table.has_marks
        assert stage.toasts[-1] == "2 jobs: cancelled"


async def test_all_that_match_is_a_query_and_not_a_page() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        jobs(stage).visit("state:dead")
        await stage.settle()
        await stage.press("A")
        assert "all 30 that match are marked" in stage.text

        await stage.press("r")
        stage.clock.move(1)
        await stage.press("y")
        await stage.settle()

        assert stage.source.commanded == [Act(verb="requeue", where="state:dead", newest=235)]


async def test_another_filter_is_not_what_all_that_match_were_marked_for() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        jobs(stage).visit("state:dead")
        await stage.settle()
        await stage.press("A")
        jobs(stage).visit("state:retry")
        await stage.settle()
        assert "marked" not in stage.text
        assert jobs(stage).selection() == jobs(stage).ids([jobs(stage).chosen_jobs()[0]])


async def test_run_again_is_requeue_for_what_ended_and_run_now_for_what_waits() -> None:
    async with on_stage() as stage:
        await stage.press("2", "r")
        assert stage.source.commanded == [Act(verb="run-now", ids=["240"], expected="retry")]
        jobs(stage).visit("state:dead")
        await stage.settle()
        await stage.press("r")
        assert stage.source.commanded[1] == Act(verb="requeue", ids=["235"], expected="dead")


async def test_far_rows_are_read_when_they_come_into_view() -> None:
    source = incident.source()
    source.jobs = [Job(id=id, task="t", queue="mail") for id in range(1, 5001)]
    async with on_stage(source) as stage:
        await stage.press("2", "G")
        assert stage.line_with("> 1 ")
        assert "5,000 of 5,000" in stage.text
        await stage.press("g")
        assert stage.line_with("> 5000")


async def test_the_order_can_be_chosen_and_turned_round() -> None:
    async with on_stage() as stage:
        await stage.press("2", "S")
        assert cursor_on(stage) == 1
        await stage.press("s", "down", "down", "enter")
        assert jobs(stage).list.sort == "next"


async def test_the_chosen_order_is_told_and_outlasts_the_filter() -> None:
    async with on_stage() as stage:
        await stage.press("2", "S")
        assert "sort:id  240 jobs" in stage.text
        jobs(stage).visit("state:dead")
        await stage.settle()
        assert "sort:id  30 jobs" in stage.text
        assert cursor_on(stage) == 3
        jobs(stage).visit("state:dead sort:-id")
        await stage.settle()
        assert cursor_on(stage) == 235
        assert "sort:id" not in stage.text


async def test_the_order_can_be_part_of_the_filter() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash")
        await stage.type("state:dead sort:id")
        await stage.press("enter")
        assert cursor_on(stage) == 3


async def test_why_answers_in_words_with_what_was_seen() -> None:
    async with on_stage() as stage:
        await stage.press("2", "x")
        assert "Why is job 240 where it is?" in stage.text
        assert "waits for its next attempt" in stage.text
        assert "attempt  3" in stage.text


async def test_the_id_is_copied(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSH_TTY", "/dev/pts/1")
    async with on_stage() as stage:
        await stage.press("2", "y")
        assert stage.console.clipboard == "240"


async def test_what_is_listed_can_be_exported(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with on_stage() as stage:
        await stage.press("2", "ctrl+s", "enter")
        await soon(lambda: stage.toasts, "an export")
        assert "240 jobs written to" in stage.toasts[-1]


async def test_keys_that_would_be_refused_are_dim() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        assert "job.kill" in jobs(stage).impossible()
        await stage.press("down", "down")
        assert "► running" in stage.line_with("> 238")
        assert "job.kill" not in jobs(stage).impossible()


async def test_single_letters_do_not_act_while_one_types() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash", *"q8crK")
        assert stage.console.pane.context == "jobs"
        assert stage.source.commanded == []


async def test_it_says_how_many_newer_jobs_there_are_above() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        await news(stage, *(Job(id=id, task="new", queue="mail") for id in range(241, 260)))
        assert "19 newer above (g shows)" in stage.text
        await stage.press("g")
        assert "newer above" not in stage.text


async def test_the_values_of_a_key_are_offered_with_how_many_jobs_have_them() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash")
        await stage.type("queue:mail,re")
        assert "reports 9,414" in stage.text


async def test_a_word_on_its_way_to_be_a_key_is_not_looked_for() -> None:
    async with on_stage() as stage:
        await stage.press("2", "slash")
        await stage.type("sta")
        await stage.pilot.pause(REST * 2)
        assert "240 jobs" in stage.text
        await stage.type("te:dead")
        await soon(lambda: "30 jobs" in stage.text, "the filter to be tried")


async def test_rows_that_could_not_be_had_are_asked_for_again() -> None:
    source = incident.source()
    source.jobs = incident.jobs(900)
    async with on_stage(source) as stage:
        await stage.press("2")
        source.lost = True
        await stage.press("G")
        assert cursor_on(stage) is None
        assert "> ···" in stage.text
        source.lost = False
        await stage.pass_time(2)
        assert cursor_on(stage) == 1


async def test_news_do_not_move_a_cursor_whose_row_is_still_on_its_way() -> None:
    source = incident.source()
    source.jobs = incident.jobs(900)
    async with on_stage(source) as stage:
        await stage.press("2")
        source.lost = True
        await stage.press("G")
        source.lost = False
        await news(stage)
        assert cursor_on(stage) == 1
