from __future__ import annotations

import pytest

from redrive.cli import sets
from redrive.lifecycle import JobState
from redrive.models import Job
from redrive.protocol.commands import Act, Acted, Outcome, Refused
from redrive.protocol.rehearsals import Preview, PreviewReply
from redrive.protocol.rows import RunPlan
from support.peer import Peer

from .conftest import Redrive

VERBS = ["requeue", "cancel", "kill", "restart", "run-now", "hold", "release", "discard"]


def refused(code: str, exit_code: int, retry_after: float | None = None) -> Refused:
    return Refused(
        code=code, message="not now", hint="wait", retry_after=retry_after, exit_code=exit_code
    )


@pytest.fixture(autouse=True)
def _obeying(peer: Peer) -> None:
    def act(request: Act) -> Acted:
        return Acted(outcomes=[Outcome(id=id, done=True, state="queued") for id in request.ids])

    peer.replies["Act"] = act
    peer.replies["Preview"] = PreviewReply(
        total=4,
        by_state={"dead": 3, "done": 1},
        fits=3,
        excluded={"it is done": 1},
        sample=[Job(id=12, task="parse", queue="bulk", state=JobState.DEAD)],
        as_of=100,
        newest=90,
    )


@pytest.mark.parametrize("verb", VERBS)
def test_every_verb_acts_on_one_job(peer: Peer, redrive: Redrive, verb: str) -> None:
    said = redrive(verb, 12, "--json", "--reason", "because")
    assert said.object == {"id": 12, "done": True, "state": "queued", "refused": None}
    assert peer.asked_for("Act") == [Act(verb=verb, ids=["12"], reason="because")]


def test_a_job_whose_data_is_cleared_first_says_so(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Act"] = Acted(outcomes=[Outcome(id="12", done=True, state="clearing")])
    assert redrive("requeue", 12).out == "12: requeued, the data of its step is cleared first\n"


@pytest.mark.parametrize(
    ("code", "exit_code"), [("try_later", 75), ("not_allowed", 77), ("wrong_state", 1)]
)
def test_a_refusal_of_one_job_is_the_exit_code(
    peer: Peer, redrive: Redrive, code: str, exit_code: int
) -> None:
    outcome = Outcome(id="12", done=False, state="dead", refused=refused(code, exit_code))
    peer.replies["Act"] = Acted(outcomes=[outcome])
    said = redrive("requeue", 12)
    assert (said.code, said.out) == (exit_code, "")
    assert said.err == "redrive: requeue 12: not now\n  wait\n"


@pytest.mark.parametrize("target", [("12", "13"), ("12,r7",), ("--where", "state:dead")])
def test_a_set_wants_yes_where_nobody_can_be_asked(
    peer: Peer, redrive: Redrive, target: tuple[str, ...]
) -> None:
    said = redrive("cancel", *target)
    assert said.code == 2
    assert "--yes" in said.err
    assert peer.asked == []


def test_of_a_set_each_has_a_result_and_one_that_failed_exits_with_1(
    peer: Peer, redrive: Redrive
) -> None:
    peer.replies["Act"] = Acted(
        outcomes=[
            Outcome(id="12", done=True, state="cancelled"),
            Outcome(id="r7", done=False, state="done", refused=refused("wrong_state", 1)),
        ]
    )
    said = redrive("cancel", "12,r7", "--yes", "--json")
    assert said.code == 1
    assert [(line["id"], line["done"]) for line in said.lines] == [(12, True), ("r7", False)]
    assert said.lines[1]["refused"]["code"] == "wrong_state"


def test_of_a_set_that_no_message_holds_the_others_are_counted(
    peer: Peer, redrive: Redrive
) -> None:
    told = [Outcome(id="12", done=True, state="cancelled")]
    peer.replies["Act"] = Acted(outcomes=told, total=8, more_done=5, more_refused=2)
    said = redrive("cancel", "--where", "id>0", "--yes")
    assert said.code == 1
    assert said.out == "12: cancelled\ncancel: 6 of 8 done\n"
    assert "of 7 others 5 were done and 2 were not" in said.err


def test_an_id_that_is_named_twice_is_acted_on_once(peer: Peer, redrive: Redrive) -> None:
    redrive("cancel", 12, "12,13", "--yes")
    assert peer.asked_for("Act")[0].ids == ["12", "13"]


def test_a_redrive_prints_its_id(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Act"] = Acted(outcomes=[], redrive=3, total=386)
    said = redrive(
        *("requeue", "-w", "state:dead", "--canary", 1, "--pace", "50/min"),
        *("--stop-at", "20%", "--force", "--yes", "--json"),
    )
    assert said.object == {"redrive": 3, "total": 386, "outcomes": []}
    assert peer.asked_for("Act") == [
        Act(
            verb="requeue",
            where="state:dead",
            canary=1,
            pace="50/min",
            stop_at=0.2,
            force=True,
            again=True,
        )
    ]


def test_a_redrive_of_one_job_is_told_as_a_redrive(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Act"] = Acted(outcomes=[], redrive=4, total=1)
    said = redrive("requeue", 12, "--pace", "5/min", "--json")
    assert said.object == {"redrive": 4, "total": 1, "outcomes": []}


@pytest.mark.parametrize("option", [("--canary", 1), ("--pace", "5/min"), ("--stop-at", "20%")])
def test_a_redrive_of_jobs_that_are_none_for_it_did_not_work(
    peer: Peer, redrive: Redrive, option: tuple[object, ...]
) -> None:
    peer.replies["Act"] = Acted(outcomes=[])
    one = redrive("requeue", 12, *option)
    assert (one.code, one.out) == (1, "")
    assert "job 12 is not dead or cancelled" in one.err
    assert "none of these jobs" in redrive("requeue", "12,13", *option, "--yes").err


def test_a_redrive_of_some_of_the_jobs_that_were_named_says_so(
    peer: Peer, redrive: Redrive
) -> None:
    peer.replies["Act"] = Acted(outcomes=[], redrive=4, total=1)
    said = redrive("requeue", "12,13", "--canary", 1, "--yes")
    assert (said.code, said.out.splitlines()[0]) == (1, "redrive 4: 1 job")
    assert said.err.startswith("1 of 2 are not dead or cancelled")


def test_a_run_goes_on_from_a_step(peer: Peer, redrive: Redrive) -> None:
    redrive("requeue", "r7", "--from", "parse")
    assert peer.asked_for("Act") == [Act(verb="requeue", ids=["r7"], from_step="parse")]


@pytest.mark.parametrize("agrees", [True, False])
def test_a_run_with_results_is_processed_anew_once_that_is_confirmed(
    peer: Peer, redrive: Redrive, monkeypatch: pytest.MonkeyPatch, agrees: bool
) -> None:
    def act(request: Act) -> Acted:
        return Acted(
            outcomes=[
                Outcome(id="r7", done=True, state="running")
                if request.again
                else Outcome(id="r7", done=False, refused=refused("partial_results", 77))
            ]
        )

    peer.replies["Act"] = act
    assert redrive("requeue", "r7").code == 77
    assert redrive("requeue", "r7", "--yes").code == 0

    monkeypatch.setattr(sets, "_can_ask", lambda: True)
    monkeypatch.setattr("click.confirm", lambda *_, **__: agrees)
    assert redrive("requeue", "r7").code == (0 if agrees else 77)


def test_a_dry_run_shows_and_changes_nothing(peer: Peer, redrive: Redrive) -> None:
    said = redrive("requeue", "--where", "queue:bulk", "--dry-run")
    assert said.code == 0
    assert "requeue would change 3 of 4 jobs (3 dead, 1 done)" in said.out
    assert "not 1: it is done" in said.out
    assert peer.asked_for("Preview") == [Preview(verb="requeue", where="queue:bulk")]
    assert peer.asked_for("Act") == []


def test_a_dry_run_in_json_is_one_object(redrive: Redrive) -> None:
    said = redrive("requeue", "--where", "queue:bulk", "--dry-run", "--json")
    assert (said.object["total"], said.object["fits"]) == (4, 3)


def test_a_dry_run_says_how_many_more_there_are_than_it_shows(redrive: Redrive) -> None:
    assert redrive("requeue", "--where", "queue:bulk", "--dry-run").out.endswith("and 2 more\n")


def test_a_dry_run_on_runs_names_the_steps_it_is_about(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Preview"] = PreviewReply(
        total=4,
        by_state={"done": 3, "dead": 1},
        fits=1,
        excluded={"its step is not run again": 1, "it is done": 2},
        sample=[Job(id=21, task="parse", queue="bulk", state=JobState.DEAD)],
        as_of=100,
        newest=0,
        runs=[RunPlan(id="r7", steps=["parse", "store"]), RunPlan(id="r8", refused="it is done")],
    )
    said = redrive("requeue", "r7", "r8", "--from", "parse", "--dry-run")
    assert said.code == 0
    assert "  r7: steps parse, store\n  r8: not, it is done\n" in said.out
    assert peer.asked_for("Preview") == [
        Preview(verb="requeue", runs=["r7", "r8"], from_step="parse")
    ]


@pytest.mark.parametrize("verb", VERBS)
def test_a_filter_that_matches_nothing_is_no_failure(
    peer: Peer, redrive: Redrive, verb: str
) -> None:
    peer.replies["Act"] = Acted(outcomes=[])
    said = redrive(verb, "--where", "queue:nope", "--yes")
    assert (said.code, said.out) == (0, f"{verb}: no job matches, nothing was done\n")
    as_json = redrive(verb, "--where", "queue:nope", "--yes", "--json")
    assert (as_json.code, as_json.err) == (0, "")
    if verb == "requeue":
        assert as_json.object == {"redrive": None, "total": 0, "outcomes": []}
    else:
        assert as_json.out == ""


def test_a_redrive_tells_at_once_whom_it_could_not_requeue(peer: Peer, redrive: Redrive) -> None:
    refusal = refused("not_allowed", 77)
    peer.replies["Act"] = Acted(
        outcomes=[
            Outcome(id="12", done=True, state="queued"),
            Outcome(id="13", done=False, state="dead", refused=refusal),
        ],
        redrive=3,
        total=2,
    )
    said = redrive("requeue", "--where", "state:dead", "--yes")
    assert said.code == 1
    assert said.out.startswith("redrive 3: 1 of 2 jobs requeued\n13: not done, not now\n")
    as_json = redrive("requeue", "--where", "state:dead", "--yes", "--json").object
    assert [each["id"] for each in as_json["outcomes"] if not each["done"]] == [13]


@pytest.mark.parametrize("arguments", [(), ("12", "--where", "state:dead")])
def test_a_verb_wants_ids_or_a_filter(redrive: Redrive, arguments: tuple[str, ...]) -> None:
    said = redrive("hold", *arguments)
    assert said.code == 2
    assert "either ids or --where" in said.err


@pytest.mark.parametrize(("where", "what"), [(" ", "is empty"), ("sort:-age", "only sorts")])
def test_a_filter_that_chooses_nothing_is_refused_and_the_one_for_everything_works(
    peer: Peer, redrive: Redrive, where: str, what: str
) -> None:
    said = redrive("hold", "--where", where, "--yes")
    assert (said.code, peer.asked) == (2, [])
    assert f"the filter of --where {what}" in said.err
    assert "`--where 'id>0'` means every job" in said.err
    assert redrive("hold", "--where", "id>0", "--yes").code == 0


def test_a_filter_with_a_mistake_is_pointed_at_before_the_daemon_is_asked(
    peer: Peer, redrive: Redrive
) -> None:
    said = redrive("cancel", "--where", "state:dead stat:x", "--yes")
    assert said.code == 2
    assert "state:dead stat:x\n           ^" in said.err
    assert peer.asked == []
