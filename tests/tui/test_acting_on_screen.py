"""The confirmation ladder as it is climbed with the keyboard."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from textual.widgets import Button

from redrive.client.refusals import AnswerLost
from redrive.protocol.commands import Act, Drain, PauseIt, ResumeIt, Trigger
from redrive.protocol.queries import Fate
from redrive_tui.widgets.confirm import Confirm
from support import incident
from support.recorded import Gate, Recorded
from support.stage import Stage, on_stage


async def to_running(stage: Stage) -> None:
    await stage.press("2", "down", "down")


async def say_yes(stage: Stage, key: str = "y") -> None:
    stage.clock.move(1)
    stage.console.mirror.heard()
    await stage.press(key)
    await stage.settle()


async def test_killing_one_job_shows_where_what_and_the_same_as_a_command() -> None:
    async with on_stage() as stage:
        await to_running(stage)
        await stage.press("K")
        assert "PROD-EU   kill job 238" in stage.text
        assert "1  ► running" in stage.text
        assert "same as  redrive kill 238" in stage.text
        assert stage.source.commanded == []


async def test_enter_on_an_opened_dialog_keeps_everything_as_it_is() -> None:
    async with on_stage() as stage:
        await to_running(stage)
        await stage.press("K")
        await say_yes(stage, "enter")
        assert stage.source.commanded == []
        assert not isinstance(stage.console.screen, Confirm)


async def test_a_key_held_down_does_not_go_through_the_dialog() -> None:
    async with on_stage() as stage:
        await to_running(stage)
        await stage.press("K", "y", "y")
        assert isinstance(stage.console.screen, Confirm)
        assert stage.source.commanded == []
        await say_yes(stage)
        assert stage.source.commanded == [Act(verb="kill", ids=["238"], expected="leased")]


async def test_the_named_verb_can_be_chosen_with_tab_and_enter() -> None:
    async with on_stage() as stage:
        await to_running(stage)
        await stage.press("K", "tab")
        await say_yes(stage, "enter")
        assert len(stage.source.commanded) == 1


async def test_the_arrow_keys_go_from_one_choice_to_the_other() -> None:
    async with on_stage() as stage:
        await to_running(stage)
        for there, back in (("right", "left"), ("down", "up")):
            await stage.press("K", there)
            assert stage.console.focused is stage.console.screen.query_one("#go")
            await stage.press(back)
            assert stage.console.focused is stage.console.screen.query_one("#keep")
            await stage.press("escape")


async def test_the_arrow_keys_go_from_field_to_field() -> None:
    async with on_stage() as stage:
        await stage.press("3", "r", "up")
        assert stage.console.focused is stage.console.screen.query_one("#reason")
        await stage.press("down")
        assert stage.console.focused is stage.console.screen.query_one("#number")


async def test_a_set_of_which_some_are_left_out_says_the_true_number() -> None:
    source = incident.source()
    source.jobs = [
        replace(job, reason="permanent") if job.id in (235, 227) else job for job in source.jobs
    ]
    async with on_stage(source) as stage:
        await stage.press("2", "slash")
        await stage.type("state:dead")
        await stage.press("enter", "space", "space", "space", "r")
        assert "requeue 1 job of 3" in stage.text
        assert "2  left out: the failure is permanent" in stage.text
        assert str(stage.console.screen.query_one("#go", Button).label) == "requeue 1 job"


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_a_dialog_shows_all_its_fields_where_there_is_little_room(
    size: tuple[int, int],
) -> None:
    async with on_stage(size=size) as stage:
        await stage.press("3", "r")
        for words in ("speed", "canary", "stop at", "reason", "type 30 to go on", "same as"):
            assert words in stage.text
        assert "keep (esc)" in stage.text
        assert "requeue 30 jobs" in stage.line_with("keep (esc)")


async def test_what_does_not_fit_a_dialog_comes_with_page_down() -> None:
    async with on_stage(size=(60, 12)) as stage:
        await stage.press("3", "r")
        assert "pgdn: more" in stage.text
        assert "e.g." not in stage.text
        await stage.press("pagedown")
        assert "e.g." in stage.text


async def test_a_share_of_failures_stops_a_redrive_and_nonsense_is_said_to_be() -> None:
    async with on_stage() as stage:
        await stage.press("3", "r")
        await stage.type("30")
        await stage.press("up", "up")
        await stage.type("many")
        assert "not yet  stop at: many is no share of failures" in stage.text
        assert stage.console.screen.query_one("#go", Button).disabled
        await stage.press(*["backspace"] * 4)
        await stage.type("20%")
        assert "--stop-at 20%" in stage.text
        await say_yes(stage, "enter")
        assert stage.source.commanded[0].stop_at == 0.2  # type: ignore[attr-defined]


async def test_cancelling_a_running_job_asks_first() -> None:
    async with on_stage() as stage:
        await to_running(stage)
        await stage.press("c")
        assert isinstance(stage.console.screen, Confirm)
        await stage.press("escape")
        assert stage.source.commanded == []


async def test_a_group_is_redriven_after_its_number_was_typed() -> None:
    async with on_stage() as stage:
        await stage.press("3", "r")
        assert "matched by  state:dead group:77be10d4" in stage.text
        assert stage.console.screen.query_one("#go", Button).disabled
        await stage.press("y")
        assert isinstance(stage.console.screen, Confirm)
        await stage.press("backspace")
        await stage.type("30")
        assert "--canary 1 --pace 50/min" in stage.text

        await say_yes(stage, "enter")

        assert stage.source.commanded == [
            Act(
                verb="requeue",
                where="state:dead group:77be10d4",
                newest=235,
                canary=1,
                pace="50/min",
            )
        ]


async def test_another_number_than_the_one_asked_for_does_nothing() -> None:
    async with on_stage() as stage:
        await stage.press("3", "r")
        await stage.type("29")
        await say_yes(stage, "enter")
        assert stage.source.commanded == []
        assert isinstance(stage.console.screen, Confirm)


async def test_a_protected_environment_asks_even_for_one_job() -> None:
    source = Recorded(incident.status(), incident.welcome(protected=True))
    source.jobs = incident.jobs()
    async with on_stage(source) as stage:
        await stage.press("2", "r")
        assert isinstance(stage.console.screen, Confirm)


async def test_a_queue_is_paused_resumed_and_its_dead_jobs_discarded() -> None:
    async with on_stage() as stage:
        await stage.press("5", "p", "P")
        assert stage.source.commanded == [PauseIt(name="queue:mail"), ResumeIt(name="queue:mail")]
        await stage.press("down", "D")
        assert "matched by  state:dead queue:reports" in stage.text
        assert "type 30 to go on" in stage.text


async def test_a_schedule_is_triggered_and_a_node_drained() -> None:
    async with on_stage() as stage:
        await stage.press("6", "t")
        assert stage.source.commanded == [Trigger(schedule="nightly-rollup")]
        await stage.press("7", "X")
        assert "drain node w1" in stage.text
        await say_yes(stage)
        assert stage.source.commanded[1] == Drain(node="w1")


async def test_a_run_resumes_where_it_stopped_or_from_the_step_under_the_cursor() -> None:
    async with on_stage() as stage:
        await stage.press("4", "down", "r")
        assert stage.source.commanded == [Act(verb="requeue", ids=["r8"])]
        await stage.press("enter", "down", "r")
        assert stage.source.commanded[1] == Act(verb="requeue", ids=["r8"], from_step="parse")


async def test_z_takes_back_what_can_be_taken_back() -> None:
    async with on_stage() as stage:
        await stage.press("2", "h", "z")
        assert [command.verb for command in stage.source.commanded] == ["hold", "release"]  # type: ignore[attr-defined]


async def test_a_viewer_sees_that_it_may_only_look() -> None:
    async with on_stage(read_only=True) as stage:
        assert "read only" in stage.grid[0]
        await stage.press("2", "r")
        assert "may only look" in stage.toasts[-1]
        roles = dict(stage.console.hints.lines[0])
        assert (roles[" run again  "], roles[" why  "]) == ("rule", "dim")


async def test_my_commands_show_their_fate_and_their_command() -> None:
    async with on_stage() as stage:
        await stage.press("2", "r", "o")
        assert "done    run now job 240" in stage.text
        assert "redrive run-now 240" in stage.text


async def test_an_unknown_outcome_is_asked_about_when_the_link_is_back() -> None:
    async with on_stage() as stage:
        stage.source.fault = AnswerLost("the daemon went away", request="x")
        await stage.press("2", "r")
        await stage.settle()
        assert any("outcome unknown" in text for text in stage.toasts)
        assert any("the daemon never got it" in text for text in stage.toasts)


async def test_a_daemon_that_takes_its_time_is_asked_once_what_became_of_a_command() -> None:
    async with on_stage() as stage:
        gate = stage.source.gates[Fate] = Gate()
        stage.source.fault = AnswerLost("the daemon went away", request="x")
        await stage.press("2")
        await stage.pilot.press("r")
        await gate.reached.wait()
        for _ in range(5):
            stage.console.tick()
            await stage.pilot.pause()
        gate.opened.set()
        await stage.settle()
        assert sum(isinstance(query, Fate) for query in stage.source.asked) == 1
        assert any("the daemon never got it" in text for text in stage.toasts)
