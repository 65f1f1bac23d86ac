"""Going about: screens, the way back, freshness, what happens where there is little room."""

from __future__ import annotations

import pytest

from redrive.errors import TryLater
from redrive.models import Event
from redrive.protocol.queries import GroupPage, ListGroups, ListRuns, RunPage
from redrive_tui.app import STEPS_BACK
from redrive_tui.frame import TABS
from redrive_tui.link_state import LinkWord
from redrive_tui.liveness import LATE_AFTER
from redrive_tui.mirror import Mirror
from support import incident
from support.daemon import soon
from support.recorded import Recorded
from support.stage import on_stage


async def test_every_number_shows_its_screen() -> None:
    async with on_stage() as stage:
        for number, screen in enumerate(TABS, 1):
            await stage.press(str(number))
            assert stage.console.pane.context == screen


async def test_minus_goes_back_to_where_one_was() -> None:
    async with on_stage() as stage:
        await stage.press("2", "3", "minus")
        assert stage.console.pane.context == "jobs"


async def test_the_way_back_is_as_long_as_anybody_walks() -> None:
    async with on_stage() as stage:
        console, steps = stage.console, 0
        for number in range(STEPS_BACK + 10):
            await console.action_show("jobs" if number % 2 else "dead")
        here = None
        while console.pane is not here:
            here, steps = console.pane, steps + 1
            await console.action_previous()

        assert steps - 1 == STEPS_BACK


async def test_q_leaves_a_job_and_then_the_console() -> None:
    async with on_stage() as stage:
        await stage.press("2", "enter")
        assert stage.console.pane.context == "job"
        await stage.press("q")
        assert stage.console.pane.context == "jobs"
        await stage.press("q")
        assert stage.console.return_code == 0


async def test_the_overview_shows_queues_trouble_and_what_comes() -> None:
    async with on_stage(size=(130, 34)) as stage:
        assert "mail" in stage.line_with("1,204")
        assert "PAUSED" in stage.line_with("imports")
        assert "✗ 398 dead in reports: Database unreachable" in stage.text
        assert "↻ 31 retries in mail" in stage.text
        assert "LATE 9.0s" in stage.text


async def test_a_healthy_system_says_so() -> None:
    source = incident.source(attention=[], due=[])
    async with on_stage(source) as stage:
        assert "nothing needs attention" in stage.text
        assert "nothing falls due" in stage.text


async def test_an_empty_daemon_has_words_for_every_screen() -> None:
    empty = Recorded(
        incident.status(states={}, queues=[], nodes=[], attention=[], due=[]), incident.welcome()
    )
    async with on_stage(empty) as stage:
        for number in "12345678":
            await stage.press(number)
            assert len([line for line in stage.grid if line]) > 3


async def test_enter_on_trouble_leads_to_where_it_is() -> None:
    async with on_stage() as stage:
        await stage.press("tab", "enter")
        assert stage.console.pane.context == "dead"
        await stage.press("1", "tab", "down", "enter")
        assert stage.console.pane.context == "jobs"
        assert "/ queue:imports" in stage.text


class Silent(Recorded):
    """A daemon that does not answer, and is not heard."""

    def __init__(self) -> None:
        super().__init__(incident.status(), incident.welcome())
        self.lost = True

    async def follow(self, mirror: Mirror) -> None:
        """Hears nothing."""


CLAIMS = ["nothing needs", "nothing falls", "no queue", "no node", "no job", "0 jobs", "no dead"]
CLAIMS += ["0 dead", "no runs", "Runs 0", "no steps", "no schedule", "nothing runs"]


@pytest.mark.parametrize("word", ["connecting", "lost"])
async def test_before_the_daemons_first_word_no_screen_claims_anything(word: LinkWord) -> None:
    async with on_stage(Silent()) as stage:
        stage.console.mirror.relink(word)
        for number in "12345678":
            await stage.press(number)
            assert "ipc:///run/redrive" in stage.grid[0]
            assert word in stage.grid[0]
            assert [claim for claim in CLAIMS if claim in stage.text] == []


async def test_a_daemon_that_was_never_reached_is_told_with_since_when_and_why() -> None:
    async with on_stage(Silent()) as stage:
        why = "nobody listens there; start it with `redrived`"
        stage.console.mirror.relink("lost", detail=why)
        stage.clock.move(12)
        await stage.settle()

        told = "cannot reach ipc:///run/redrive since 14:13:20 · nothing is known of it yet"
        assert told in stage.text
        assert why in stage.text


async def test_once_the_daemon_speaks_the_screen_shows_what_it_says() -> None:
    source = Silent()
    async with on_stage(source) as stage:
        await stage.press("3")
        source.lost = False
        await Recorded.follow(source, stage.console.mirror)
        await stage.pass_time(1)
        assert "412 dead  0 causes" in stage.text
        assert "cannot reach" not in stage.text


async def test_a_lost_link_keeps_the_data_and_says_how_old_it_is() -> None:
    async with on_stage() as stage:
        stage.console.mirror.relink("lost", retries=3, detail="nobody listens there")
        stage.clock.move(12)
        await stage.settle()

        assert "lost 12s, retry 3" in stage.grid[0]
        assert "since 14:13:20 · what you see is 12s old" in stage.text
        assert "nobody listens there" in stage.text
        assert "1,204" in stage.text
        assert stage.console.panes.has_class("-stale")


async def test_a_screen_that_was_read_before_there_was_news_is_as_old_as_its_reading() -> None:
    async with on_stage() as stage:
        await stage.press("4", "1")
        stage.clock.move(60)
        mirror = stage.console.mirror
        mirror.apply([Event(seq=mirror.seq + 1, at=incident.NOW, type="step_started", job=1)])
        await stage.settle()
        mirror.relink("lost")
        stage.source.lost = True
        stage.clock.move(12)
        await stage.press("4")
        assert "what you see is 1m12s old" in stage.text
        await stage.press("1")
        assert "what you see is 12s old" in stage.text


async def test_what_waits_comes_no_nearer_while_nobody_tells() -> None:
    async with on_stage() as stage:
        await stage.press("2")
        assert "in 41s" in stage.line_with("> 240")
        stage.console.mirror.relink("lost")
        stage.clock.move(60)
        await stage.settle()
        assert "in 41s" in stage.line_with("> 240")


async def test_a_node_is_late_by_the_age_of_its_beat() -> None:
    async with on_stage() as stage:
        assert "LATE" not in stage.line_with("w1 ")
        await stage.pass_time(LATE_AFTER)
        assert "LATE" in stage.line_with("w1 ")


@pytest.mark.parametrize("size", [(120, 34), (80, 24), (60, 16), (40, 10), (10, 4), (1, 1)])
async def test_no_size_of_terminal_is_a_crash(size: tuple[int, int]) -> None:
    async with on_stage(size=size) as stage:
        await stage.press("2", "3", "4", "5", "6", "7", "8", "2", "enter", "right_square_bracket")


async def test_too_little_room_is_said() -> None:
    async with on_stage(size=(50, 12)) as stage:
        assert "needs 60x16 to show more" in stage.grid[-1]


@pytest.mark.parametrize("size", [(80, 24), (60, 16)])
async def test_the_name_of_the_environment_and_the_link_are_always_there(
    size: tuple[int, int],
) -> None:
    async with on_stage(size=size) as stage:
        assert stage.grid[0].startswith(" PROD-EU ")
        assert "live" in stage.grid[0]


async def test_help_lists_the_keys_of_the_screen_and_runs_what_is_chosen() -> None:
    async with on_stage() as stage:
        await stage.press("question_mark")
        assert "KEYS · overview" in stage.text
        await stage.type("schedules")
        assert "go.schedules" in stage.text
        await stage.press("enter")
        assert stage.console.pane.context == "schedules"


async def test_the_palette_goes_places_and_changes_the_theme() -> None:
    async with on_stage() as stage:
        await stage.press("colon")
        await stage.type("theme: light")
        await soon(lambda: stage.text.count("theme: light") > 1, "a command found")
        await stage.press("enter")
        assert stage.console.theme == "light"


async def test_a_moved_key_does_what_it_did_and_the_old_one_nothing() -> None:
    async with on_stage(keymap={"go.jobs": "b", "app.help": "f1"}) as stage:
        await stage.press("2")
        assert stage.console.pane.context == "overview"
        await stage.press("b")
        assert stage.console.pane.context == "jobs"
        await stage.press("f1")
        assert "KEYS · jobs" in stage.text


async def test_two_keys_can_be_swapped() -> None:
    async with on_stage(keymap={"go.jobs": "3", "go.dead": "2"}) as stage:
        await stage.press("2")
        assert stage.console.pane.context == "dead"
        await stage.press("3")
        assert stage.console.pane.context == "jobs"


async def test_a_fault_in_a_worker_is_told_and_the_console_stays(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with on_stage() as stage:
        monkeypatch.setattr(stage.source, "_listruns", None)
        await stage.press("4")
        assert any("a fault in the console itself" in text for text in stage.toasts)
        await stage.press("2")
        assert stage.console.pane.context == "jobs"


async def test_a_list_that_takes_long_to_read_is_read_again_less_often() -> None:
    async with on_stage() as stage:
        mirror, source = stage.console.mirror, stage.source
        read = source._listgroups

        def slow(query: ListGroups) -> GroupPage:
            stage.clock.move(2)
            return read(query)

        source._listgroups = slow  # type: ignore[method-assign]
        await stage.press("3")
        asked = len(source.asked)
        mirror.apply([Event(seq=mirror.seq + 1, at=incident.NOW, type="job_killed", job=7)])
        await stage.pass_time(17)
        assert len(source.asked) == asked
        await stage.pass_time(2)
        assert len(source.asked) > asked


async def test_an_error_from_the_daemon_is_told_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    def busy(query: ListRuns) -> RunPage:
        raise TryLater("the daemon has its hands full", hint="ask again in 5 s")

    async with on_stage() as stage:
        monkeypatch.setattr(stage.source, "_listruns", busy)
        await stage.press("4")
        assert stage.toasts == ["the daemon has its hands full; ask again in 5 s"]


async def test_three_toasts_at_most_are_seen_and_all_are_in_the_log() -> None:
    async with on_stage() as stage:
        for number in range(1, 6):
            stage.console.say(f"word {number}", "information")
        await stage.settle()
        assert [f"word {number}" in stage.text for number in range(1, 6)] == [
            False, False, True, True, True,
        ]  # fmt: skip
        await stage.press("o")
        assert "word 1" in stage.text
