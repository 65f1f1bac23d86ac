from __future__ import annotations

import io
import json
import sys
from pathlib import Path

import pytest

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.models import Job, Run
from redrive.protocol.commands import Enqueue, Enqueued, EnqueuedJob, JobOrder, Started
from redrive.protocol.envelope import Refusal
from redrive.protocol.queries import JobPage, JobReply, RunReply
from support.peer import Peer

from .conftest import Redrive


@pytest.fixture(autouse=True)
def _accepting(peer: Peer) -> None:
    def accept(request: Enqueue) -> Enqueued:
        count = len(request.orders) * request.count
        jobs = [EnqueuedJob(id=12 + at, state="queued", created=True) for at in range(count)]
        return Enqueued(count=count, created=count, first_id=12, last_id=11 + count, jobs=jobs)

    peer.replies["Enqueue"] = accept


def ending(peer: Peer, *states: JobState) -> None:
    jobs = [
        Job(id=12 + at, task="parse", queue="q", state=state) for at, state in enumerate(states)
    ]
    peer.replies["ListJobs"] = JobPage(jobs=jobs, after=None, as_of=1)
    peer.replies["ShowJob"] = JobReply(job=jobs[0], history=[])


def test_a_value_is_json_when_it_parses_and_text_otherwise(peer: Peer, redrive: Redrive) -> None:
    redrive("enqueue", "parse", "n=3", "ok=true", "list=[1]", "path=a.zip", "text=1=2", "empty=")
    (asked,) = peer.asked_for("Enqueue")
    assert asked.orders[0].args == {
        "n": 3,
        "ok": True,
        "list": [1],
        "path": "a.zip",
        "text": "1=2",
        "empty": "",
    }


def test_what_only_looks_like_json_is_text(peer: Peer, redrive: Redrive) -> None:
    redrive("enqueue", "parse", "a=NaN", "b=1e400", "c=007", "d=" + "[" * 10_000)
    args = peer.asked_for("Enqueue")[0].orders[0].args
    assert (args["a"], args["b"], args["c"], args["d"][:2]) == ("NaN", "1e400", "007", "[[")


def test_a_number_beyond_64_bits_is_named_and_how_it_can_be_passed(redrive: Redrive) -> None:
    said = redrive("enqueue", "parse", "n=1", f'p={{"big":[2,{10**30}]}}')
    assert said.code == 2
    assert "argument p.big[1] is a number of more than 64 bits" in said.err
    assert f"""'"{10**30}"' in a shell""" in said.err
    assert "argument " not in redrive("enqueue", "parse", "--priority", 10**30).err


def test_what_is_no_text_is_a_mistake_not_a_defect(redrive: Redrive) -> None:
    assert redrive("enqueue", "parse", "n=\udcff").code == 2
    assert redrive("enqueue", "parse", f"n={10**30}").code == 2
    assert redrive("enqueue", "parse", "--args", "[1]").code == 2


def test_pairs_are_laid_over_the_args(peer: Peer, redrive: Redrive) -> None:
    redrive("enqueue", "parse", "--args", '{"a": 1, "b": 2}', "b=3")
    assert peer.asked_for("Enqueue")[0].orders[0].args == {"a": 1, "b": 3}


def test_every_option_reaches_the_order(peer: Peer, redrive: Redrive) -> None:
    redrive(
        *("enqueue", "parse", "--queue", "bulk", "--operation", "request", "--mode", "auto"),
        *("--priority", -2, "--delay", "1m30s", "--at", "1970-01-01T00:01:00Z"),
        *("--unique", "k", "--hold"),
    )
    assert peer.asked_for("Enqueue")[0].orders == [
        JobOrder(
            queue="bulk",
            operation="request",
            mode="auto",
            priority=-2,
            delay=90.0,
            at=60 * SECOND,
            unique="k",
            hold=True,
        )
    ]


def test_json_is_one_object_of_id_state_and_created(redrive: Redrive) -> None:
    said = redrive("enqueue", "parse", "--json")
    assert said.object == {"id": 12, "state": "queued", "created": True}


def test_a_bulk_prints_its_sum(peer: Peer, redrive: Redrive) -> None:
    said = redrive("--json", "enqueue", "parse", "--count", 3)
    assert said.object == {"count": 3, "created": 3, "first_id": 12, "last_id": 14}
    assert peer.asked_for("Enqueue")[0].count == 3


def test_a_file_is_read_line_by_line_over_the_options(
    peer: Peer, redrive: Redrive, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.ndjson"
    file.write_text('{"args": {"n": 1}, "delay": "2m"}\n\n{"priority": 5, "queue": "manual"}\n')
    said = redrive("enqueue", "parse", "all=1", "--queue", "bulk", "--from-file", file, "--json")
    assert said.object == {"count": 2, "created": 2, "first_id": 12, "last_id": 13}
    assert peer.asked_for("Enqueue")[0].orders == [
        JobOrder(args={"all": 1, "n": 1}, queue="bulk", delay=120.0),
        JobOrder(args={"all": 1}, queue="manual", priority=5),
    ]


@pytest.mark.parametrize(
    ("line", "said_of_it"),
    [
        ("{", "JSON"),
        ("[1]", "object"),
        ('{"arg": {}}', "unknown option 'arg'"),
        ('{"args": [1]}', "object"),
        ('{"delay": "soon"}', "duration"),
        ('{"priority": "high"}', "int"),
        ('{"priority": 3000000000}', "a priority of 3000000000 is not possible"),
        ('{"delay": -4}', "a delay of -4.0 s is not possible"),
        ('{"unique": ""}', "the unique key '' cannot be used"),
        ("\N{ZERO WIDTH NO-BREAK SPACE}{}", "JSON"),
    ],
)
def test_a_bad_line_is_named_and_nothing_is_enqueued(
    peer: Peer, redrive: Redrive, tmp_path: Path, line: str, said_of_it: str
) -> None:
    file = tmp_path / "jobs.ndjson"
    file.write_text("{}\n" * 3000 + line + "\n")
    said = redrive("enqueue", "parse", "--from-file", file)
    assert said.code == 2
    assert f"line 3001 of {file}: " in said.err
    assert said_of_it in said.err
    assert peer.asked_for("Enqueue") == []


def test_a_byte_order_mark_is_no_part_of_the_first_line(
    peer: Peer, redrive: Redrive, tmp_path: Path
) -> None:
    file = tmp_path / "jobs.ndjson"
    file.write_text('{"args": {"n": 1}}\n', encoding="utf-8-sig")
    assert redrive("enqueue", "parse", "--from-file", file).code == 0
    assert peer.asked_for("Enqueue")[0].orders == [JobOrder(args={"n": 1})]
    file.write_text("{\n", encoding="utf-8-sig")
    said = redrive("enqueue", "parse", "--from-file", file)
    assert (said.code, f"line 1 of {file}: " in said.err) == (2, True)


@pytest.mark.parametrize("first", [True, False])
def test_a_line_that_only_the_daemon_refuses_is_named(
    peer: Peer, redrive: Redrive, tmp_path: Path, first: bool
) -> None:
    def reply(request: Enqueue) -> Enqueued | Refusal:
        if first or len(peer.asked_for("Enqueue")) > 1:
            return Refusal(code="not_found", message="there is no queue 'x'", order=1)
        n = len(request.orders)
        return Enqueued(count=n, created=n, first_id=1, last_id=n)

    peer.replies["Enqueue"] = reply
    file = tmp_path / "jobs.ndjson"
    file.write_text("\n{}\n\n" + '{"queue": "x"}\n' * 3000)
    said = redrive("enqueue", "parse", "--from-file", file)
    line = 4 if first else 4 + 2000
    assert said.code == 1
    assert f"line {line} of {file}: there is no queue 'x'" in said.err


def test_standard_input_can_be_the_file(
    peer: Peer, redrive: Redrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Pipe(io.BytesIO):
        name = "<stdin>"

        def seekable(self) -> bool:
            return False

    typed = io.TextIOWrapper(Pipe(b'{"args": {"n": 1}}\n{"args": {"n": 2}}\n'))
    monkeypatch.setattr(sys, "stdin", typed)
    said = redrive("enqueue", "parse", "--from-file", "-", "--json")
    assert said.object["count"] == 2


def test_waiting_tells_how_the_job_ended(peer: Peer, redrive: Redrive) -> None:
    ending(peer, JobState.DONE)
    said = redrive("enqueue", "parse", "--wait", "--json")
    assert (said.code, said.object["state"], said.object["created"]) == (0, "done", True)


def test_waiting_for_a_job_that_dies_exits_with_1(peer: Peer, redrive: Redrive) -> None:
    ending(peer, JobState.DEAD)
    said = redrive("enqueue", "parse", "--wait")
    assert (said.code, said.out) == (1, "job 12 queued\njob 12 dead\n")


def test_waiting_too_long_exits_with_124(peer: Peer, redrive: Redrive) -> None:
    ending(peer, JobState.LEASED)
    said = redrive("enqueue", "parse", "--wait", "--timeout", "50ms")
    assert said.code == 124
    assert "time ran out before 12 had ended" in said.err


def test_waiting_for_a_bulk_counts_the_ends(peer: Peer, redrive: Redrive) -> None:
    ending(peer, JobState.DONE, JobState.DEAD, JobState.DONE)
    said = redrive("enqueue", "parse", "--count", 3, "--wait", "--json")
    assert (said.code, said.object["states"]) == (1, {"done": 2, "dead": 1})


def test_a_bulk_that_takes_too_long_counts_those_that_have_not_ended(
    peer: Peer, redrive: Redrive
) -> None:
    ending(peer, JobState.DONE, JobState.QUEUED, JobState.LEASED, JobState.DONE)
    said = redrive("enqueue", "parse", "--count", 4, "--wait", "--timeout", "50ms", "--json")
    assert (said.code, said.object["states"]) == (124, {"done": 2, "queued": 1, "leased": 1})


def test_a_refused_order_exits_as_the_daemon_says(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Enqueue"] = Refusal(
        code="usage", message="there is no task 'pars'", hint="did you mean parse?", exit_code=2
    )
    said = redrive("enqueue", "pars")
    assert (said.code, said.out) == (2, "")
    assert said.err == "redrive: there is no task 'pars'\n  did you mean parse?\n"


def test_a_run_is_started_with_its_key_and_batch(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Start"] = Started(count=1, created=1, first_id="r7", last_id="r7", runs=["r7"])
    peer.replies["ShowRun"] = RunReply(run=Run(id="r7", pipeline="ingest"))
    said = redrive("start", "ingest", "n=1", "--batch", "b", "--key", "k", "--json")
    assert (said.object["id"], said.object["created"]) == ("r7", True)
    (asked,) = peer.asked_for("Start")
    assert (asked.pipeline, asked.orders[0].args) == ("ingest", {"n": 1})
    assert (asked.orders[0].batch, asked.orders[0].key) == ("b", "k")


def test_a_file_of_runs_prints_its_sum(peer: Peer, redrive: Redrive, tmp_path: Path) -> None:
    peer.replies["Start"] = Started(count=2, created=2, first_id="r7", last_id="r8")
    file = tmp_path / "items.ndjson"
    file.write_text("".join(json.dumps({"key": key}) + "\n" for key in "ab"))
    said = redrive("start", "fetch", "--batch", "b", "--from-file", file, "--json")
    assert said.object == {"count": 2, "created": 2, "first_id": "r7", "last_id": "r8"}
    assert [each.key for each in peer.asked_for("Start")[0].orders] == ["a", "b"]


def test_waiting_for_a_file_of_runs_counts_the_ends(
    peer: Peer, redrive: Redrive, tmp_path: Path
) -> None:
    peer.replies["Start"] = Started(count=2, created=2, first_id="r7", last_id="r8")
    peer.replies["ShowRun"] = lambda asked: RunReply(
        run=Run(id=asked.id, pipeline="fetch", state="done" if asked.id == "r7" else "failed")
    )
    file = tmp_path / "items.ndjson"
    file.write_text('{"key": "a"}\n{"key": "b"}\n')
    said = redrive("start", "fetch", "--from-file", file, "--wait")
    assert (said.code, said.out) == (1, "2 runs, 2 of them new: r7 to r8\n1 done, 1 failed\n")
    as_json = redrive("start", "fetch", "--from-file", file, "--wait", "--json")
    assert as_json.object["states"] == {"done": 1, "failed": 1}


def test_runs_that_cannot_be_told_from_others_are_not_waited_for(
    peer: Peer, redrive: Redrive, tmp_path: Path
) -> None:
    peer.replies["Start"] = Started(count=2, created=1, first_id="r3", last_id="r8")
    file = tmp_path / "items.ndjson"
    file.write_text('{"key": "a"}\n{"key": "b"}\n')
    said = redrive("start", "fetch", "--from-file", file, "--wait")
    assert (said.code, "`redrive runs`" in said.err) == (2, True)


@pytest.mark.parametrize(
    ("command", "noun"), [(("enqueue", "parse"), "job"), (("start", "fetch"), "run")]
)
def test_an_empty_file_is_told_as_that(
    peer: Peer, redrive: Redrive, tmp_path: Path, command: tuple[str, str], noun: str
) -> None:
    file = tmp_path / "nothing.ndjson"
    file.write_text("\n")
    said = redrive(*command, "--from-file", file, "--wait")
    assert (said.code, said.out) == (0, f"there is no {noun} in the file, nothing was done\n")
    assert peer.asked == []
