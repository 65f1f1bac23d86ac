"""The confirmation ladder as it is climbed with the keyboard."""

from __future__ import annotations

from textual.widgets import Button

from redrive.client.refusals import AnswerLost
from redrive.protocol.commands import Act, Drain, PauseIt, ResumeIt, Trigger
from redrive_tui.widgets.confirm import Confirm
from support import incident
from support.recorded import Recorded
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
