"""A wish, as the daemon gets it, as a command, and what its answer means."""

from __future__ import annotations

import pytest

from redrive.lifecycle import DEAD, LEASED
from redrive.protocol import commands
from redrive.protocol.commands import Acted, Done, Outcome, Refused
from redrive.protocol.rehearsals import Preview
from redrive_tui.wishes import (
    Fate,
    Ids,
    Matching,
    Named,
    Options,
    Selection,
    Wish,
    command_line,
    fate_of,
    preview_of,
    request_of,
)

TWO = Ids(ids=("12", "13"))
GROUP = Matching(where="state:dead group:a41f", number=386, newest=900)
PACED = Options(canary=1, pace="50/min", reason="db2 is back")


def wish(verb: str, selection: Selection, options: Options | None = None) -> Wish:
    return Wish(verb=verb, selection=selection, options=options or Options())


@pytest.mark.parametrize(
    ("asked", "line"),
    [
        (wish("kill", TWO), "redrive kill 12 13"),
        (
            wish("requeue", Ids(ids=("r7",)), Options(step="parse")),
            "redrive requeue r7 --from parse",
        ),
        (
            wish("requeue", GROUP, PACED),
            "redrive requeue --where 'state:dead group:a41f' --canary 1 --pace 50/min --reason 'db2 is back'",
        ),
        (wish("cancel", Matching(where="", number=14)), "redrive cancel --where 'id>0'"),
        (wish("pause", Named(kind="queue", name="mail")), "redrive pause queue:mail"),
        (wish("resume", Named(kind="schedule", name="x")), "redrive resume schedule:x"),
        (wish("trigger", Named(kind="schedule", name="nightly")), "redrive trigger nightly"),
        (wish("drain", Named(kind="node", name="w1")), "redrive drain"),
        (wish("undo", Named(kind="redrive", name="4")), "redrive undo 4"),
        (wish("pause", Named(kind="redrive", name="4")), "redrive pause redrive:4"),
    ],
)
def test_every_wish_has_its_twin_on_the_command_line(asked: Wish, line: str) -> None:
    assert command_line(asked) == line


@pytest.mark.parametrize(
    ("asked", "request_"),
    [
        (wish("kill", TWO), commands.Act(verb="kill", ids=["12", "13"])),
        (
            wish("requeue", GROUP, PACED),
            commands.Act(
                verb="requeue",
                where="state:dead group:a41f",
                newest=900,
                canary=1,
                pace="50/min",
                reason="db2 is back",
            ),
        ),
        (wish("pause", Named(kind="queue", name="mail")), commands.PauseIt(name="queue:mail")),
        (wish("resume", Named(kind="queue", name="mail")), commands.ResumeIt(name="queue:mail")),
        (wish("trigger", Named(kind="schedule", name="n")), commands.Trigger(schedule="n")),
        (wish("drain", Named(kind="node", name="w1")), commands.Drain(node="w1")),
        (wish("undo", Named(kind="redrive", name="4")), commands.Undo(redrive=4)),
        (
            wish("pause", Named(kind="redrive", name="4")),
            commands.ControlRedrive(redrive=4, verb="pause"),
        ),
    ],
)
def test_every_wish_is_one_request(asked: Wish, request_: object) -> None:
    assert request_of(asked) == request_


def test_what_the_operator_saw_travels_along_when_it_is_one_state() -> None:
    same = Ids(ids=("12", "13"), expected={"12": DEAD, "13": DEAD})
    mixed = Ids(ids=("12", "13"), expected={"12": DEAD, "13": LEASED})

    assert request_of(wish("requeue", same)) == commands.Act(
        verb="requeue", ids=["12", "13"], expected="dead"
    )
    assert request_of(wish("cancel", mixed)) == commands.Act(verb="cancel", ids=["12", "13"])


def test_only_what_is_about_jobs_and_runs_can_be_previewed() -> None:
    assert preview_of(wish("kill", TWO)) == Preview(verb="kill", ids=[12, 13])
    assert preview_of(wish("requeue", GROUP)) == Preview(
        verb="requeue", where="state:dead group:a41f"
    )
    assert preview_of(wish("requeue", Ids(ids=("r7",)))) == Preview(verb="requeue", runs=["r7"])
    assert preview_of(wish("pause", Named(kind="queue", name="mail"))) is None


def test_every_wish_has_a_key_of_its_own() -> None:
    assert wish("kill", TWO).key != wish("kill", TWO).key


def refused(id: str) -> Outcome:
    return Outcome(id=id, done=False, refused=Refused(code="wrong_state", message="it is done"))


def test_rows_succeed_one_by_one() -> None:
    reply = Acted(outcomes=[Outcome(id="12", done=True), refused("13"), refused("14")])

    assert fate_of(wish("kill", TWO), reply) == Fate(
        word="partly", detail="1 killed; not 13: it is done, and 1 more", done=frozenset({"12"})
    )


def test_of_a_set_that_no_message_holds_all_are_counted() -> None:
    reply = Acted(outcomes=[Outcome(id="12", done=True)], more_done=7, more_refused=3)
    fate = fate_of(wish("kill", GROUP), reply)
    assert (fate.word, fate.detail) == ("partly", "8 killed; not 3 others")


def test_when_none_succeeds_it_was_refused() -> None:
    assert fate_of(wish("kill", TWO), Acted(outcomes=[refused("12")])) == Fate(
        word="refused", detail="12: it is done"
    )


def test_a_set_worked_off_in_the_background_is_known_by_its_number() -> None:
    fate = fate_of(wish("requeue", GROUP), Acted(outcomes=[], redrive=4, total=386))

    assert (fate.word, fate.redrive) == ("done", 4)
    assert fate.detail == "under way as redrive 4"


def test_an_answer_without_words_gets_those_of_the_verb() -> None:
    paused = wish("pause", Named(kind="queue", name="mail"))

    assert fate_of(paused, Done(text="")).detail == "paused"
    assert fate_of(paused, Done(text="mail is paused")).detail == "mail is paused"
