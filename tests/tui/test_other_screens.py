"""Dead, runs, queues, schedules, nodes, events: what each shows and where Enter leads."""

from __future__ import annotations

from zoneinfo import ZoneInfo

import pytest
from msgspec.structs import replace

from redrive.models import Event
from redrive.protocol.announcements import JobVitals
from redrive.protocol.commands import ControlRedrive, Undo
from redrive.protocol.queries import ListJobs, ListRuns, ReadLog
from redrive.protocol.rows import Attention
from redrive_tui.formatting import Look
from redrive_tui.liveness import LATE_AFTER
from redrive_tui.screens.dead import TOLD_FOR, DeadPane
from redrive_tui.screens.events import EventsPane
from redrive_tui.screens.nodes import JOBS_SHOWN, TAIL
from redrive_tui.widgets.stream_view import StreamView
from redrive_tui.widgets.table import Table
from support import incident
from support.recorded import Gate
from support.stage import on_stage


async def test_dead_jobs_are_causes_first_with_guidance_for_the_one_under_the_cursor() -> None:
    async with on_stage(size=(130, 34)) as stage:
        await stage.press("3")
        assert "412 dead  3 causes" in stage.text
        assert "what to do  Wait until db2 answers" in stage.text
        assert "4 more jobs with this error still retrying" in stage.text
        await stage.press("down")
        assert "The data does not fit" in stage.text


async def test_the_same_dead_jobs_by_task_queue_node_and_day() -> None:
    async with on_stage() as stage:
        await stage.press("3")
        for title, number, first in (
            ("TASK", "4 tasks", ["380", "2m", "rollup"]),
            ("QUEUE", "3 queues", ["398", "2m", "reports"]),
            ("NODE", "2 nodes", ["400", "2m", "w1"]),
            ("DAY (UTC)", "2 days", ["404", "2m", "2026-09-21"]),
        ):
            await stage.press("]")
            assert f"412 dead  {number}" in stage.text
            row = stage.grid.index(stage.line_with("COUNT")) + 1
            assert title in stage.grid[row - 1]
            assert stage.grid[row].replace(">", "").split()[:3] == first
        await stage.press("]")
        assert "412 dead  3 causes" in stage.text


async def test_a_node_with_dead_jobs_is_listed_and_redriven_as_a_whole() -> None:
    source = incident.source()
    source.jobs = [replace(job, node="w1") if job.id == 235 else job for job in source.jobs]
    async with on_stage(source) as stage:
        await stage.press("3", "]", "]", "]", "r")
        assert "matched by  state:dead node:w1" in stage.text
        await stage.press("escape", "enter")
        assert "/ state:dead node:w1" in stage.text


async def test_what_needs_attention_leads_to_its_dead_jobs() -> None:
    source = incident.source()
    there = Attention(kind="dead", text="12 dead in imports", where="state:dead queue:imports")
    source.status = replace(source.status, attention=[replace(there, screen="dead")])
    async with on_stage(source) as stage:
        await stage.press("tab", "enter")
        assert "412 dead  3 queues" in stage.text
        pane = stage.console.pane
        assert isinstance(pane, DeadPane)
        assert pane.table.current is not None
        assert pane.table.current.name == "imports"


async def test_enter_lists_the_jobs_of_a_cause() -> None:
    async with on_stage() as stage:
        await stage.press("3", "enter")
        assert "/ state:dead group:77be10d4" in stage.text
        assert "30 jobs" in stage.text


async def test_a_running_redrive_shows_its_progress_and_can_be_steered() -> None:
    source = incident.source()
    source.redrives = [incident.redrive()]
    async with on_stage(source) as stage:
        await stage.press("3")
        assert "120/386" in stage.line_with("redrive 4")
        assert "✓ 110  ✗ 3" in stage.line_with("redrive 4")
        await stage.press("p", "P", "Z")
        assert stage.source.commanded == [
            ControlRedrive(redrive=4, verb="pause"),
            ControlRedrive(redrive=4, verb="resume"),
            Undo(redrive=4),
        ]


async def test_a_redrive_is_steered_whatever_has_become_of_the_cause_under_the_cursor() -> None:
    source = incident.source()
    source.redrives = [incident.redrive()]
    async with on_stage(source) as stage:
        await stage.press("3")
        stage.source.groups = stage.source.groups[1:]
        stage.console.pane.reread()
        await stage.settle()
        await stage.press("p")
        assert stage.source.commanded == [ControlRedrive(redrive=4, verb="pause")]
        await stage.press("r")
        assert "is no longer in this list" in stage.toasts[-1]


async def test_a_redrive_that_was_stopped_says_so_for_a_while() -> None:
    source = incident.source()
    stopped = replace(
        incident.redrive(), state="stopped", why="the canary failed", finished_at=incident.NOW
    )
    source.redrives = [stopped]
    async with on_stage(source) as stage:
        await stage.press("3")
        assert "stopped" in stage.line_with("redrive 4")
        assert "the canary failed" in stage.line_with("redrive 4")
        await stage.pass_time(TOLD_FOR)
        assert stage.line_with("redrive 4") == ""


async def test_a_redrive_says_why_it_skipped_jobs() -> None:
    source = incident.source()
    source.redrives = [replace(incident.redrive(), skips={"it is running": 2})]
    async with on_stage(source) as stage:
        await stage.press("3")
        assert "2 skipped: it is running" in stage.line_with("redrive 4")


async def test_a_key_with_nothing_to_act_on_says_so() -> None:
    source = incident.source()
    source.groups, source.runs = [], []
    async with on_stage(source) as stage:
        await stage.press("3", "r", "p", "4", "r", "5", "end", "D")
        assert stage.toasts == [
            "there is no cause under the cursor",
            "no redrive is under way",
            "there is no run under the cursor",
            "queue default has no dead jobs",
        ]


async def test_a_run_shows_its_steps_and_a_step_its_error() -> None:
    async with on_stage() as stage:
        await stage.press("4", "down")
        assert "✗ failed" in stage.line_with("r8")
        assert "OperationalError: could not connect to db2" in stage.line_with("203")
        assert "parse failed" in stage.text


async def test_the_step_of_a_run_that_has_left_the_list_is_not_taken_for_that_of_another() -> None:
    async with on_stage() as stage:
        await stage.press("4", "down", "enter")
        assert "r8" in stage.line_with(">")
        stage.source.runs = [run for run in stage.source.runs if run.id != "r8"]
        stage.console.pane.reread()
        await stage.settle()
        await stage.press("r")
        assert stage.source.commanded == []
        assert "r8 is no longer in this list" in stage.toasts[-1]


async def test_enter_on_a_step_opens_its_job_and_escape_returns() -> None:
    async with on_stage() as stage:
        await stage.press("4", "enter", "enter")
        assert stage.console.pane.context == "job"
        assert "201  send_welcome" in stage.text
        await stage.press("escape")
        assert stage.console.pane.context == "runs"


async def test_a_batch_shows_its_phases_and_its_gate_and_enter_its_runs() -> None:
    async with on_stage() as stage:
        await stage.press("4", "]")
        assert "request ✓39 ✗1" in stage.text
        assert "opens in 11m00s" in stage.text
        await stage.press("enter")
        assert "Runs 2" in stage.text
        await stage.press("escape")
        assert "Runs 3" in stage.text


async def test_the_phases_of_a_batch_are_told_whole_in_a_standard_terminal() -> None:
    async with on_stage(size=(80, 24)) as stage:
        await stage.press("4", "]")
        assert "39 ✓ done  1 ✗ dead" in stage.line_with(" request ")
        assert "opens in 11m00s" in stage.line_with(" download ")


async def test_a_key_on_a_batch_is_not_for_the_run_that_is_not_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SSH_TTY", "/dev/pts/0")  # what is copied goes through the terminal
    async with on_stage() as stage:
        await stage.press("4", "down", "]", "r")
        assert stage.source.commanded == []
        assert "open it for its runs" in stage.toasts[-1]
        await stage.press("y")
        assert stage.console.clipboard == stage.source.batches[0].name


async def test_the_runs_of_a_batch_are_read_although_all_of_them_are_just_being_read() -> None:
    async with on_stage() as stage:
        await stage.press("4", "]")
        gate = stage.source.gates[ListRuns] = Gate()
        stage.console.pane.reread()
        await gate.reached.wait()
        await stage.pilot.press("enter")
        gate.opened.set()
        await stage.settle()
        assert "Runs 2" in stage.text


async def test_a_page_of_runs_is_not_taken_for_their_number() -> None:
    source = incident.source()
    source.older_runs = True
    async with on_stage(source) as stage:
        await stage.press("4")
        assert " Runs 3+ " in stage.text
        assert "the newest 3" in stage.text


async def test_a_batch_says_how_many_of_its_runs_are_not_kept() -> None:
    source = incident.source()
    source.batches = [replace(source.batches[0], forgotten=7)]
    async with on_stage(source) as stage:
        await stage.press("4", "]")
        assert "7 of 40 forgotten" in stage.line_with("night")


async def test_a_paused_schedule_promises_no_next_time() -> None:
    source = incident.source()
    paused = replace(source.schedules[0], paused=True, paused_by="anna", paused_why="lunch")
    source.schedules = [paused]
    async with on_stage(source) as stage:
        await stage.press("6")
        assert 'PAUSED by anna: "lunch"; it fires again once resumed' in stage.text
        assert "in 1d00h" not in stage.text


async def test_a_paused_queue_says_by_whom_and_why() -> None:
    async with on_stage() as stage:
        await stage.press("5", "down", "down")
        assert 'PAUSED since 13:10:20 by anna: "vendor outage"' in stage.text


async def test_a_queue_tells_what_is_ready_from_what_waits_for_more_than_a_slot() -> None:
    async with on_stage(size=(140, 30)) as stage:
        await stage.press("5", "down", "down")
        assert "waiting  600 ready · 28 scheduled · 12 held" in stage.text
        titles, row = (stage.line_with(words) for words in ("READY", "◌ imports"))
        place = titles.index("SCHEDULED")
        assert row[place : place + 9].strip() == "28"
        assert "600" in row
        assert "640" not in row


async def test_a_schedule_shows_its_last_and_its_next_fires() -> None:
    async with on_stage() as stage:
        await stage.press("6")
        assert "✓✓✓✓✗✓✓✓" in stage.line_with("nightly-rollup")
        assert "2026-09-22 14:15:20 UTC  in 1d00h" in stage.text
        assert "PAUSED" in stage.line_with("close-books")


async def test_a_node_shows_what_it_runs_and_another_version_is_marked() -> None:
    async with on_stage() as stage:
        await stage.press("7")
        assert "RUNNING ON w1" in stage.text
        assert stage.line_with("> 233").split()[2] == "send_welcome"
        assert stage.line_with("w3").rstrip().endswith("0.9.1 !")
        await stage.press("down", "down")
        assert "RUNNING ON w3" in stage.text


async def test_what_runs_on_a_node_shows_its_progress_and_its_last_words() -> None:
    for width in (120, 80):
        async with on_stage(size=(width, 30)) as stage:
            await stage.press("7")
            words = stage.line_with("> 233").split()
            assert words[words.index("62%") :][:2] == ["62%", "ERROR"]
            assert ReadLog(id=233, tail=True, limit=TAIL) in stage.source.asked


async def test_what_runs_on_a_node_shows_what_it_uses() -> None:
    async with on_stage(size=(120, 30)) as stage:
        await stage.press("7")
        used = JobVitals(job=233, heartbeat_at=None, cpu=130.0, memory=48 << 20, children=2)
        stage.console.mirror.feel(incident.vitals("w1", used))
        stage.console.pane.show()
        await stage.settle()
        words = stage.line_with("> 233").split()
        assert words[words.index("130%") :][:3] == ["130%", "48.0M", "3"]


async def test_a_node_is_not_shown_with_what_another_runs() -> None:
    async with on_stage() as stage:
        await stage.press("7")
        gate = stage.source.gates[ListJobs] = Gate()
        stage.console.pane.reread()
        await gate.reached.wait()
        await stage.pilot.press("down")
        gate.opened.set()
        await stage.settle()
        assert "RUNNING ON w2" in stage.text
        assert ListJobs(where="state:leased node:w2", limit=JOBS_SHOWN) in stage.source.asked
        assert stage.line_with("238") == ""


async def test_last_words_are_heard_although_printing_is_no_event() -> None:
    async with on_stage() as stage:
        await stage.press("7")
        stage.source.log += b"one line more\n"
        await stage.pass_time(2)
        assert "one line more" in stage.line_with("> 233")


async def test_how_many_slots_are_taken_is_drawn() -> None:
    async with on_stage() as stage:
        await stage.press("7")
        assert "8/8      ▰▰▰▰  mail" in stage.line_with("w1 leader")
        assert "1/16     ▱▱▱▱  default" in stage.line_with("w2")


async def test_a_job_on_a_node_is_explained_and_killed_from_the_list_of_nodes() -> None:
    async with on_stage() as stage:
        await stage.press("7")
        assert "RUNNING ON w1 · keys for jobs mean 233 ──" in stage.text
        await stage.press("x")
        assert "Why is job 233 where it is?" in stage.text
        await stage.press("escape", "K")
        assert "kill job 233" in stage.text
        await stage.press("escape", "tab")
        assert "RUNNING ON w1 ──" in stage.text


async def test_where_there_is_no_job_a_key_for_jobs_says_so() -> None:
    source = incident.source()
    source.jobs = []
    async with on_stage(source) as stage:
        await stage.press("7", "K", "x")
        assert stage.toasts == ["there is no job under the cursor"] * 2


async def test_events_come_as_they_happen_and_what_is_missing_is_drawn() -> None:
    async with on_stage() as stage:
        await stage.press("8")
        assert "action_error" in stage.text
        mirror = stage.console.mirror
        mirror.apply([Event(seq=mirror.seq + 1205, at=incident.NOW, type="job_killed", job=7)])
        await stage.settle()

        assert "-- 1,204 events not received (this console was too slow) --" in stage.text
        assert "job_killed" in stage.grid[-2] + stage.text
        assert "1,204 not received" in stage.text


async def test_an_event_is_told_in_words_and_its_times_in_a_zone() -> None:
    async with on_stage(look=Look(zone=ZoneInfo("Europe/Berlin"))) as stage:
        await stage.press("8")
        mirror = stage.console.mirror
        decision = {"because": "attempt 1 of 3 timed out", "rule": "builtin", "delay": 5.0}
        data = {"decision": decision, "log": {"size": 3}, "node": "w1"}
        event = Event(seq=mirror.seq + 1, at=incident.NOW, type="step_retry", job=7, data=data)
        mirror.apply([event])
        await stage.settle()
        assert "attempt 1 of 3 timed out, node w1" in stage.text
        assert "{" not in stage.text
        assert "times in CEST" in stage.text


async def test_a_search_that_finds_nothing_says_so() -> None:
    async with on_stage() as stage:
        await stage.press("8", "slash")
        await stage.type("no such thing")
        await stage.press("enter")
        assert stage.toasts == ["nothing here has 'no such thing'"]
        await stage.press("2", "down", "down", "l")
        stage.console.pane.query_one(StreamView).restart(["all is well"])
        await stage.press("e")
        assert stage.toasts[-1] == "no line here speaks of an error"


async def test_a_new_daemon_begins_a_new_log() -> None:
    async with on_stage() as stage:
        await stage.press("8")
        stage.console.mirror.meet(incident.welcome(epoch="e2"))
        stage.console.mirror.load(incident.status(seq=5))
        await stage.settle()
        pane = stage.console.pane
        assert isinstance(pane, EventsPane)
        assert pane.stream.items == []


async def test_freezing_holds_what_is_shown_until_it_is_thawed() -> None:
    async with on_stage() as stage:
        await stage.press("8", "u")
        mirror = stage.console.mirror
        mirror.apply([Event(seq=mirror.seq + 1, at=incident.NOW, type="job_killed", job=7)])
        await stage.settle()
        assert "job_killed" not in stage.text
        await stage.press("u")
        assert "job_killed" in stage.text


@pytest.mark.parametrize("width", [120, 80, 60])
async def test_what_is_frozen_says_so_at_the_top_and_grows_no_older(width: int) -> None:
    async with on_stage(size=(width, 30)) as stage:
        await stage.press("7", "u")
        seen = stage.grid[3:]
        mirror = stage.console.mirror
        mirror.apply([Event(seq=mirror.seq + 1, at=incident.NOW, type="job_killed", job=7)])
        await stage.pass_time(2 * LATE_AFTER)
        assert stage.grid[3:] == seen
        assert "live" in stage.grid[0]
        assert "frozen 10s, 1 change waiting (u shows)" in stage.grid[0]
        await stage.press("u")
        assert stage.grid[3:] != seen
        assert "frozen" not in stage.text


async def test_a_frozen_screen_that_is_read_again_is_another_picture() -> None:
    async with on_stage() as stage:
        await stage.press("3", "u")
        await stage.pass_time(60)
        await stage.press("]")
        assert "frozen 0.0s" in stage.grid[0]


async def test_zoom_ends_where_another_screen_begins() -> None:
    async with on_stage() as stage:
        await stage.press("5", "plus", "3")
        assert "412 dead" in stage.text


async def test_a_zoomed_list_can_be_filtered_and_says_what_is_marked() -> None:
    async with on_stage() as stage:
        await stage.press("2", "plus", "space", "slash")
        await stage.type("state:retry")
        assert "2 Jobs" not in stage.text
        assert "state:retry" in stage.text
        assert "1 marked" in stage.grid[-2]
        await stage.press("escape")
        assert isinstance(stage.console.focused, Table)
        assert stage.console.screen.maximized is not None
        await stage.press("escape")
        assert stage.console.screen.maximized is None


async def test_a_pane_can_be_zoomed_and_given_back() -> None:
    async with on_stage() as stage:
        await stage.press("plus")
        assert stage.console.screen.maximized is not None
        assert "PROD-EU" in stage.grid[0]
        assert "live" in stage.grid[0]
        assert "open" in stage.grid[-1]
        await stage.press("underscore")
        assert stage.console.screen.maximized is None
