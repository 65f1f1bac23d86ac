"""One job: timeline, output, arguments, error, events."""

from __future__ import annotations

from msgspec.structs import replace

from redrive.protocol.announcements import JobVitals
from redrive.protocol.queries import ReadLog, ShowJob
from redrive_tui.screens.job import JobPane
from redrive_tui.widgets.stream_view import KEPT
from support import incident
from support.recorded import Gate
from support.stage import Stage, on_stage


async def open_job(stage: Stage, *tabs: str) -> JobPane:
    await stage.press("2", "enter", *tabs)
    pane = stage.console.pane
    assert isinstance(pane, JobPane)
    return pane


async def test_it_opens_on_the_timeline_with_what_is_to_come() -> None:
    async with on_stage() as stage:
        await open_job(stage)
        assert "240  send_invoice  ↻ Retrying (attempt 3/7)  in 41s" in stage.text
        assert "then dead" in stage.text
        assert "backoff: first 15s" in stage.text


async def test_below_the_timeline_of_a_running_job_stands_what_it_uses() -> None:
    source = incident.source()
    running = next(job for job in source.jobs if job.id == 233)
    source.details = {233: replace(incident.detail(), job=running)}
    async with on_stage(source) as stage:
        await stage.press("7", "tab", "enter")
        assert "uses  " not in stage.text
        used = JobVitals(job=233, heartbeat_at=None, cpu=130.0, memory=48 << 20, children=2)
        for told, said in (
            (used, "uses  cpu 130% · memory 48.0M · 3 processes"),
            (replace(used, children=None), "uses  cpu 130% · memory 48.0M"),
            (replace(used, cpu=None, memory=None, children=None), ""),
        ):
            stage.console.mirror.feel(incident.vitals("w1", told))
            stage.console.pane.show()
            await stage.settle()
            assert stage.line_with("uses  ").strip(" │▌") == said


async def test_the_tabs_go_round() -> None:
    async with on_stage() as stage:
        pane = await open_job(stage)
        seen = [pane.tab]
        for _ in range(5):
            await stage.press("]")
            seen.append(pane.tab)
        assert seen == ["timeline", "output", "args", "error", "events", "timeline"]


async def test_arguments_are_json_one_can_read() -> None:
    async with on_stage() as stage:
        await open_job(stage, "]", "]")
        assert '"invoice": 20240' in stage.text


async def test_an_error_comes_with_guidance_rule_and_traceback() -> None:
    async with on_stage() as stage:
        await open_job(stage, "]", "]", "]")
        assert "what to do  Will retry automatically." in stage.text
        assert "decided by  builtin: connection" in stage.text
        assert "sock.send(data)" in stage.text


async def test_its_events_are_those_of_the_job_alone() -> None:
    async with on_stage() as stage:
        await open_job(stage, "[")
        assert "step_retry" in stage.text
        assert "node_late" not in stage.text


async def test_l_shows_the_end_of_the_output_and_follows_it() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l")
        assert "follow on" in stage.text
        assert "ERROR smtp 451 try later" in stage.grid[-2]


async def test_scrolling_up_ends_following_and_f_takes_it_up_again() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l", "k")
        assert "follow off" in stage.text
        await stage.press("f")
        assert "follow on" in stage.text


async def test_output_is_searched_with_n_and_back() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l", "slash")
        await stage.type("welcome_v3")
        await stage.press("enter")
        pane = stage.console.pane
        assert isinstance(pane, JobPane)
        first = pane.output.hit
        await stage.press("n")
        assert pane.output.hit != first
        await stage.press("N")
        assert pane.output.hit == first
        assert "searched welcome_v3" in stage.text
        await stage.press("escape")
        assert pane.output.sought == ""


async def test_e_goes_to_the_next_line_that_speaks_of_an_error() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l", "g", "e")
        pane = stage.console.pane
        assert isinstance(pane, JobPane)
        assert pane.output.hit == 40


async def test_the_keys_of_output_are_told_where_there_is_output() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l")
        assert "/ search  f follow" in stage.grid[-1]
        await stage.press("question_mark")
        assert "wrap long lines" in stage.text
        await stage.press("escape", "]")
        assert "search" not in stage.grid[-1]
        assert "open" not in stage.grid[-1]


async def test_long_lines_are_wrapped_when_asked() -> None:
    source = incident.source()
    source.log = b"x" * 250 + b"\nend\n"
    async with on_stage(source, size=(100, 24)) as stage:
        await stage.press("2", "l", "w")
        rows = [line for line in stage.grid if set(line.strip()) == {"x"}]
        assert len(rows) == 3


async def test_wrapped_lines_lose_no_character_to_the_scroll_bar() -> None:
    source = incident.source()
    printed = [f"{n:03}{'abcdefghij' * 20}" for n in range(30)]
    source.log = "\n".join(printed).encode() + b"\n"
    async with on_stage(source, size=(100, 24)) as stage:
        await stage.press("2", "l", "w")
        pane = stage.console.pane
        assert isinstance(pane, JobPane)
        cells = pane.output.scrollable_content_region.width
        assert pane.output.show_vertical_scrollbar
        rows = [line[1 : 1 + cells] for line in stage.grid[6:-1]]
        assert printed[-1] in "".join(row.strip() for row in rows)


async def test_where_output_is_that_is_not_here_is_said_in_full() -> None:
    source = incident.source()
    source.log = b""
    source.log_warning = "node w2 ran this attempt and has its output: ask the daemon there"
    async with on_stage(source, size=(60, 16)) as stage:
        await stage.press("2", "l")
        assert source.log_warning in " ".join(stage.text.split())


async def test_output_that_is_empty_says_so() -> None:
    source = incident.source()
    source.log = b""
    async with on_stage(source) as stage:
        await stage.press("2", "l")
        assert "nothing was printed" in stage.text


async def test_of_more_output_than_is_kept_it_is_said_that_only_its_end_is_here() -> None:
    source = incident.source()
    source.log = b"a line\n" * (KEPT + 1)
    async with on_stage(source) as stage:
        await stage.press("2", "l")
        assert "only its last 20,000 lines" in stage.text
        source.executions, source.log = 2, b"a new beginning\n"
        stage.console.pane.reread()
        await stage.settle()
        assert "a new beginning" in stage.text
        assert "only its last" not in stage.text


async def test_the_output_of_another_job_is_followed_and_not_searched() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l", "slash")
        await stage.type("welcome_v3")
        await stage.press("enter", "2", "down", "l")
        assert "follow on" in stage.text
        assert "searched" not in stage.text


async def test_lines_that_go_on_unseen_say_so() -> None:
    source = incident.source()
    source.log = b"x" * 250 + b"\nend\n"
    async with on_stage(source, size=(100, 24)) as stage:
        await stage.press("2", "l")
        assert stage.line_with("xxx").endswith("x›")


async def test_the_scroll_bar_of_output_that_is_followed_stands_at_its_end() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l")
        pane = stage.console.pane
        assert isinstance(pane, JobPane)
        assert pane.output.scroll_y == pane.output.max_scroll_y > 0
        assert pane.output.vertical_scrollbar.position == pane.output.scroll_y


async def test_a_running_job_goes_on_printing() -> None:
    async with on_stage() as stage:
        await stage.press("2", "down", "down", "l")
        stage.source.log += b"one line more\n"
        await stage.pass_time(2)
        await stage.settle()
        assert "one line more" in stage.text


async def test_what_has_ended_is_shown_to_its_last_line_however_long_it_is() -> None:
    source = incident.source()
    source.log = b"".join(b"line %d of what was printed\n" % n for n in range(15_000)) + b"the end"
    async with on_stage(source) as stage:
        await stage.press("2", "l")
        assert len(source.log) > ReadLog(id=1).limit
        assert "the end" in stage.grid[-2]
        pane = stage.console.pane
        assert isinstance(pane, JobPane)
        assert len(pane.output.items) == 15_001


async def test_another_attempt_prints_from_the_start() -> None:
    async with on_stage() as stage:
        await stage.press("2", "l")
        stage.source.executions, stage.source.log = 2, b"a new beginning\n"
        await stage.press("ctrl+r")
        assert "a new beginning" in stage.text
        assert "attempt 2" in stage.text
        assert "welcome_v3" not in stage.text


async def test_a_job_that_is_opened_while_another_is_read_is_read_as_well() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        gate = stage.source.gates[ShowJob] = Gate()
        await stage.pilot.press("enter")
        await gate.reached.wait()
        await stage.pilot.press("escape", "down", "enter")
        gate.opened.set()
        await stage.settle()
        assert stage.grid[3].startswith(" 239  ")


async def test_a_job_that_is_discarded_is_shown_no_longer_and_said_to_be_gone() -> None:
    async with on_stage() as stage:
        await open_job(stage)
        stage.source.jobs, stage.source.details = [], {}
        for _ in range(3):
            await stage.press("ctrl+r")
        assert "there is no job 240" in stage.text
        assert "send_invoice" not in stage.text
        assert stage.toasts == []


async def test_a_job_that_does_not_exist_is_said_to() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        stage.source.jobs, stage.source.details = [], {}
        await stage.press("enter")
        assert "there is no job 240" in stage.text


async def test_a_job_between_attempts_says_which_retry_comes() -> None:
    async with on_stage() as stage:
        await stage.press("2", "enter")
        assert "↻ Retrying (attempt 3/7)" in stage.grid[3]
