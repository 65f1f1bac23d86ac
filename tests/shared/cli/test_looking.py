from __future__ import annotations

import json
import time

import msgspec
import pytest

from redrive.cli import words
from redrive.instants import SECOND
from redrive.lifecycle import JobState
from redrive.models import Attempt, Budgets, Decision, ErrorRecord, Job, Run, StepState
from redrive.protocol import envelope, queries
from redrive.protocol.queries import JobPage, JobReply, ListJobs, LogReply, ReadLog
from redrive.protocol.rows import (
    BatchRow,
    FireRow,
    GateRow,
    GroupRow,
    Plan,
    RedriveRow,
    ScheduleRow,
)
from support.peer import Peer, event

from .conftest import Redrive

ERROR = ErrorRecord(
    error_type="timeout",
    category="transient",
    message="timed out",
    user_message="Processing timed out",
    guidance="Will retry automatically.",
    rule="builtin pattern timeout",
)
JOB = Job(
    id=12,
    task="parse",
    queue="bulk",
    state=JobState.DEAD,
    reason="exhausted",
    attempts=1,
    error=ERROR,
    budgets=Budgets(attempts=1),
)
REPLY = JobReply(
    job=JOB,
    history=[
        Attempt(
            execution=1,
            attempt=1,
            life=1,
            started_at=0,
            ended_at=1_500_000,
            outcome="failed",
            error=ERROR,
            decision=Decision(retry=False, rule="max_attempts", because="no attempt is left"),
        )
    ],
    policy="1 attempt",
    next="`redrive requeue 12` gives it another life",
)


def many_jobs(peer: Peer, count: int) -> None:
    def page(request: ListJobs) -> JobPage:
        first = int(request.after or 0)
        ids = range(first + 1, min(first + request.limit, count) + 1)
        jobs = [Job(id=id, task="t", queue="q") for id in ids]
        return JobPage(jobs=jobs, after=str(ids[-1]) if ids[-1] < count else None, as_of=1)

    peer.replies["ListJobs"] = page


def test_a_job_is_shown_with_its_history_in_one_object(peer: Peer, redrive: Redrive) -> None:
    peer.replies["ShowJob"] = REPLY
    shown = redrive("show", 12, "--json").object
    assert (shown["id"], shown["state"], shown["error"]["error_type"]) == (12, "dead", "timeout")
    assert shown["history"][0]["started_at"] == "1970-01-01T00:00:00.000000Z"
    assert shown["history"][0]["decision"]["rule"] == "max_attempts"
    assert shown["next"].startswith("`redrive requeue 12`")


def test_a_job_is_shown_to_people_with_what_went_wrong_and_what_to_do(
    peer: Peer, redrive: Redrive
) -> None:
    peer.replies["ShowJob"] = REPLY
    out = redrive("show", 12).out
    for text in ("dead (exhausted)", "Processing timed out", "Will retry automatically.",
                 "max_attempts: no attempt is left", "1.5s", "Next: `redrive requeue 12`"):  # fmt: skip
        assert text in out


def test_a_run_is_shown_with_its_steps(peer: Peer, redrive: Redrive) -> None:
    step = StepState(name="download", why="Request failed; download skipped")
    run = Run(id="r7", pipeline="fetch", steps=[step])
    peer.replies["ShowRun"] = queries.RunReply(run=run)
    shown = redrive("show", "r7", "--json").object
    assert shown["id"] == "r7"
    assert shown["steps"][0]["why"] == "Request failed; download skipped"
    assert "Request failed; download skipped" in redrive("show", "r7").out


@pytest.mark.parametrize("id", ["x", "0", "r", "-1", "12x", "../etc/passwd"])
def test_what_is_no_id_is_refused_before_the_daemon_is_asked(
    peer: Peer, redrive: Redrive, id: str
) -> None:
    assert redrive("show", "--", id).code == 2
    assert peer.asked == []


@pytest.mark.parametrize("result", [0, False, "", [], {}])
def test_a_result_that_is_nothing_much_is_shown_too(
    peer: Peer, redrive: Redrive, result: object
) -> None:
    peer.replies["ShowJob"] = JobReply(job=msgspec.structs.replace(JOB, result=result), history=[])
    assert f"result    {json.dumps(result)}\n" in redrive("show", 12).out


def test_a_result_that_could_not_be_kept_is_told(peer: Peer, redrive: Redrive) -> None:
    note = "no result: its last line has more than 65536 bytes"
    [last] = REPLY.history
    last = msgspec.structs.replace(last, result_note=note)
    peer.replies["ShowJob"] = JobReply(job=JOB, history=[last])
    assert f"note      {note}\n" in redrive("show", 12).out
    assert redrive("show", 12, "--json").object["history"][0]["result_note"] == note


def test_an_attempt_that_is_due_is_not_told_as_one_of_the_past(
    peer: Peer, redrive: Redrive
) -> None:
    waiting = msgspec.structs.replace(JOB, state=JobState.QUEUED)
    due = Plan(attempt=1, at=0, last=True)
    peer.replies["ShowJob"] = JobReply(job=waiting, history=[], plan=[due])
    assert "  attempt 1  due now, the last\n" in redrive("show", 12).out


def test_a_held_job_is_not_due_before_it_is_released(peer: Peer, redrive: Redrive) -> None:
    held = msgspec.structs.replace(JOB, state=JobState.RETRY, held=True)
    plan = [Plan(attempt=2, at=0), Plan(attempt=3, at=words.now() + 90 * SECOND, last=True)]
    peer.replies["ShowJob"] = JobReply(job=held, history=[], plan=plan)
    said = redrive("show", 12).out
    assert "  attempt 2  once it is released\n" in said
    assert "  attempt 3  in 1m" in said


@pytest.mark.parametrize(
    ("gate", "told"),
    [
        ({"unsettled": 2}, "download waits for 2"),
        ({"unsettled": 0}, "download settled"),
        ({"unsettled": 0, "opened_at": 1}, "download opened"),
    ],
)
def test_a_gate_of_a_batch_tells_how_it_stands(
    peer: Peer, redrive: Redrive, gate: dict[str, int], told: str
) -> None:
    batch = BatchRow(
        name="b", pipeline="p", created_at=0, runs=3, running=1, done=1, failed=1, cancelled=0,
        gates=[GateRow(step="download", round=1, waiting=3, **gate)],
    )  # fmt: skip
    peer.replies["ListBatches"] = queries.BatchPage(batches=[batch], as_of=1)
    assert told in redrive("batches").out


def test_a_redrive_that_was_stopped_says_why(peer: Peer, redrive: Redrive) -> None:
    stopped = RedriveRow(
        id=3, state="stopped", created_at=0, by="ann", where="state:dead",
        total=4, requeued=1, skipped=0, succeeded=0, failed=1, why="the canary failed: 1 of 1",
    )  # fmt: skip
    peer.replies["ListRedrives"] = queries.RedrivePage(redrives=[stopped])
    assert "  the canary failed: 1 of 1\n" in redrive("redrives").out


def test_a_redrive_says_why_it_skipped_jobs(peer: Peer, redrive: Redrive) -> None:
    over = RedriveRow(
        id=3, state="done", created_at=0, by="ann", where=None, total=4, requeued=1, skipped=3,
        succeeded=1, failed=0, skips={"it is running": 2, "it is held": 1},
    )  # fmt: skip
    peer.replies["ListRedrives"] = queries.RedrivePage(redrives=[over])
    assert "  2 skipped: it is running; 1 skipped: it is held\n" in redrive("redrives").out
    assert redrive("redrives", "--json").object["skips"] == over.skips


def test_a_list_in_json_is_whole_and_one_object_a_line(peer: Peer, redrive: Redrive) -> None:
    many_jobs(peer, 1203)
    said = redrive("jobs", "--json")
    assert [line["id"] for line in said.lines] == list(range(1, 1204))
    assert said.err == ""


def test_a_line_of_json_ends_where_its_object_does(peer: Peer, redrive: Redrive) -> None:
    args = {"text": "next\x85line\u2028or\u2029paragraph"}
    found = [Job(id=1, task="t", queue="q", args=args), Job(id=2, task="t", queue="q")]
    peer.replies["ListJobs"] = JobPage(jobs=found, after=None, as_of=1)
    told = redrive("jobs", "--json").lines
    assert [job["id"] for job in told] == [1, 2]
    assert told[0]["args"] == args


def test_a_list_for_people_ends_and_says_how_to_go_on(peer: Peer, redrive: Redrive) -> None:
    many_jobs(peer, 1203)
    said = redrive("jobs")
    assert len(said.out.splitlines()) == 1 + 50
    assert said.err == "there are more: --after 50\n"
    assert redrive("jobs", "--after", 50, "--limit", 2, "--json").lines[0]["id"] == 51


def test_filter_and_order_are_the_daemons_business(peer: Peer, redrive: Redrive) -> None:
    many_jobs(peer, 1)
    redrive("jobs", "--where", "state:dead age>2h", "--sort", "-attempt")
    (asked,) = peer.asked_for("ListJobs")
    assert (asked.where, asked.sort) == ("state:dead age>2h", "-attempt")


@pytest.mark.parametrize(
    ("verb", "reply"),
    [
        ("runs", queries.RunPage(runs=[], after=None, as_of=1)),
        ("batches", queries.BatchPage(batches=[], as_of=1)),
        ("groups", queries.GroupPage(groups=[], as_of=1)),
        ("queues", queries.QueuePage(queues=[], as_of=1)),
        ("schedules", queries.SchedulePage(schedules=[], as_of=1)),
        ("nodes", queries.NodePage(nodes=[], as_of=1)),
        ("redrives", queries.RedrivePage(redrives=[])),
    ],
)
def test_an_empty_list_is_no_line_in_json_and_a_word_for_people(
    peer: Peer, redrive: Redrive, verb: str, reply: envelope.Reply
) -> None:
    kind = type(reply).__name__.removesuffix("Page")
    name = {"Batch": "Batches"}.get(kind, f"{kind}s")
    peer.replies[f"List{name}"] = reply
    assert redrive(verb, "--json").out == ""
    assert redrive(verb).out.startswith("no ")


def test_every_list_has_a_line_for_each(peer: Peer, redrive: Redrive) -> None:
    fired = FireRow(slot=0, at=0, outcome="fired", job=1, state="done")
    gate = GateRow(step="download", round=1, unsettled=2, waiting=3)
    rows: dict[str, tuple[str, envelope.Reply]] = {
        "runs": (
            "ListRuns",
            queries.RunPage(runs=[Run(id="r7", pipeline="fetch")], after=None, as_of=1),
        ),
        "batches": (
            "ListBatches",
            queries.BatchPage(
                batches=[
                    BatchRow(
                        name="b", pipeline="p", created_at=0, runs=3, running=1, done=1,
                        failed=1, cancelled=0, gates=[gate],
                    )
                ],
                as_of=1,
            ),
        ),
        "groups": (
            "ListGroups",
            queries.GroupPage(
                groups=[
                    GroupRow(
                        fingerprint="a41f", error_type="timeout", category="transient",
                        signature="timed out", dead=2, retrying=1, first_at=0, last_at=0,
                        tasks={"parse": 3}, queues={"bulk": 3}, sample=12,
                    )
                ],
                as_of=1,
            ),
        ),
        "schedules": (
            "ListSchedules",
            queries.SchedulePage(
                schedules=[
                    ScheduleRow(
                        name="nightly", what="task sync", words="daily at 03:00",
                        timezone="UTC", next=[1], last=[fired], paused=True,
                    )
                ],
                as_of=1,
            ),
        ),
        "redrives": (
            "ListRedrives",
            queries.RedrivePage(
                redrives=[
                    RedriveRow(
                        id=3, state="running", created_at=0, by="uid 0", where="state:dead",
                        total=4, requeued=3, skipped=0, succeeded=2, failed=1,
                    )
                ]
            ),
        ),
    }  # fmt: skip
    for verb, (request, reply) in rows.items():
        peer.replies[request] = reply
        assert len(redrive(verb).out.splitlines()) == 2, verb
        assert redrive(verb, "--json").object, verb


@pytest.mark.parametrize(
    ("status", "why", "told"),
    [
        ("running", "Retrying (attempt 2/3)", "Retrying (attempt 2/3)"),
        ("PARSING", "Retrying (attempt 2/3)", "PARSING, Retrying (attempt 2/3)"),
        ("PARSING", None, "PARSING"),
    ],
)
def test_a_run_in_a_list_says_which_retry_it_is_at(
    peer: Peer, redrive: Redrive, status: str, why: str | None, told: str
) -> None:
    step = StepState(name="parse", job=12, state="retry", why=why)
    run = Run(id="r7", pipeline="fetch", status=status, steps=[step])
    peer.replies["ListRuns"] = queries.RunPage(runs=[run], after=None, as_of=1)
    row = redrive("runs").out.splitlines()[1]
    assert row.split("running", 1)[1].split("0/1")[0].strip() == told


def test_a_batch_says_how_far_its_steps_are_and_what_is_forgotten(
    peer: Peer, redrive: Redrive
) -> None:
    phases = {"request": {"running": 1, "retrying": 2, "done": 9}, "download": {"gated": 9}}
    row = BatchRow(
        name="b", pipeline="p", created_at=0, runs=12, running=12, done=0, failed=0, cancelled=0,
        phases=phases, forgotten=4,
    )  # fmt: skip
    peer.replies["ListBatches"] = queries.BatchPage(batches=[row], as_of=1)
    told = redrive("batches").out
    assert "request 1 running, 2 retrying, 9 done; download 9 gated" in told
    assert "12 (4 forgotten)" in told
    assert redrive("batches", "--json").object["phases"] == phases


def test_what_attempts_are_counted_in_is_said(peer: Peer, redrive: Redrive) -> None:
    """Four executions have three retries, of which this is the first."""
    job = msgspec.structs.replace(REPLY.job, state=JobState.RETRY, attempts=1, max_attempts=4)
    peer.replies["ShowJob"] = msgspec.structs.replace(REPLY, job=job)
    told = redrive("show", 12).out
    assert "Retrying (attempt 1/3)" in told
    assert "1 of 4 executions, life 1" in told


@pytest.mark.parametrize("paused", [False, True])
def test_a_paused_schedule_has_no_next_time(peer: Peer, redrive: Redrive, paused: bool) -> None:
    row = ScheduleRow(
        name="nightly", what="task sync", words="daily", timezone="UTC", next=[1], paused=paused
    )
    peer.replies["ListSchedules"] = queries.SchedulePage(schedules=[row], as_of=1)
    assert ("ago" in redrive("schedules").out) is not paused


def test_the_last_ten_executions_are_shown_and_all_of_them_as_json(
    peer: Peer, redrive: Redrive
) -> None:
    history = [Attempt(execution=n, attempt=n, life=1, outcome=f"end{n}") for n in range(1, 13)]
    peer.replies["ShowJob"] = msgspec.structs.replace(REPLY, history=history)
    told = redrive("show", 12).out
    assert "History, without the first 2" in told
    assert [f"end{n}" in told for n in (2, 3, 12)] == [False, True, True]
    assert len(redrive("show", 12, "--json").object["history"]) == 12


def test_what_the_daemon_left_out_of_a_long_past_is_counted_too(
    peer: Peer, redrive: Redrive
) -> None:
    history = [Attempt(execution=n, attempt=n, life=1) for n in range(29_001, 30_001)]
    peer.replies["ShowJob"] = msgspec.structs.replace(REPLY, history=history)
    assert "History, without the first 29,990\n" in redrive("show", 12).out


def test_of_a_long_message_the_end_is_shown_and_all_of_it_as_json(
    peer: Peer, redrive: Redrive
) -> None:
    message = "\n".join(f"line {n}." for n in range(1, 2049))
    error = msgspec.structs.replace(ERROR, message=message)
    job = msgspec.structs.replace(JOB, error=error)
    peer.replies["ShowJob"] = msgspec.structs.replace(REPLY, job=job, history=[])
    told = redrive("show", 12).out
    assert "(2,028 lines before these, with --json)" in told
    assert [f"line {n}." in told for n in (1, 2028, 2029, 2048)] == [False, False, True, True]
    assert redrive("show", 12, "--json").object["error"]["message"] == message


def test_the_log_in_json_is_whole_and_oldest_first(peer: Peer, redrive: Redrive) -> None:
    peer.log = [event(seq) for seq in range(1, 2301)]
    assert [line["seq"] for line in redrive("events", "--json").lines] == list(range(1, 2301))


def test_more_of_the_newest_than_the_daemon_gives_at_once_are_found(
    peer: Peer, redrive: Redrive
) -> None:
    peer.log = [event(seq) for seq in range(1, 12_001)]
    found = [line["seq"] for line in redrive("events", "--last", 11_000, "--json").lines]
    assert (len(found), found[0], found[-1]) == (11_000, 1_001, 12_000)


def test_events_of_which_a_message_holds_few_are_told_all_the_same(
    peer: Peer, redrive: Redrive
) -> None:
    peer.log = [event(seq) for seq in range(1, 101)]
    peer.at_once = 7
    assert [line["seq"] for line in redrive("events", "--json").lines] == list(range(1, 101))
    newest = redrive("events", "--last", 20, "--json").lines
    assert [line["seq"] for line in newest] == list(range(81, 101))


def test_the_log_for_people_is_its_newest_part(peer: Peer, redrive: Redrive) -> None:
    peer.log = [event(seq) for seq in range(1, 201)]
    day, *lines = redrive("events").out.splitlines()
    assert len(lines) == 50
    assert lines[-1].split()[0] == "200"
    assert redrive("events", "--last", 3).out.splitlines() == [day, *lines[-3:]]
    assert [line["seq"] for line in redrive("events", "--after", 198, "--json").lines] == [199, 200]


def test_each_day_of_the_log_begins_with_its_date_and_the_zone(
    peer: Peer, redrive: Redrive, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    noon = 1_793_358_000 * SECOND  # 2026-10-30 12:00 CET
    peer.log = [
        msgspec.structs.replace(event(n), at=noon + n * 43_200 * SECOND) for n in range(1, 4)
    ]
    told = [line.strip().split("  ")[0] for line in redrive("events").out.splitlines()]
    monkeypatch.undo()
    time.tzset()
    assert told == [
        *("2026-10-31, times in CET", "1", "2"),
        *("2026-11-01, times in CET", "3"),
    ]


def test_the_log_of_one_job_is_asked_for_by_its_id(peer: Peer, redrive: Redrive) -> None:
    peer.log = [event(12)]
    assert redrive("events", 12, "--json").object["job"] == 12
    assert peer.asked_for("ListEvents")[0].id == "12"


def output(peer: Peer, written: bytes) -> None:
    def read(request: ReadLog) -> LogReply:
        data = written[request.offset : request.offset + 4]
        return LogReply(
            data=data,
            offset=request.offset + len(data),
            size=len(written),
            finished=True,
            attempt=1,
            execution=request.attempt or 1,
        )

    peer.replies["ReadLog"] = read


def test_output_is_printed_as_it_was(peer: Peer, redrive: Redrive) -> None:
    output(peer, b"one\x1b[31m\ntwo\n")
    assert redrive("logs", 12).out == "one\x1b[31m\ntwo\n"


def test_output_in_json_is_one_object(peer: Peer, redrive: Redrive) -> None:
    output(peer, "größe\n".encode())
    shown = redrive("logs", 12, "--attempt", 2, "--json").object
    assert (shown["id"], shown["execution"], shown["output"]) == (12, 2, "größe\n")


def test_following_output_ends_with_the_job(peer: Peer, redrive: Redrive) -> None:
    output(peer, b"done\n")
    peer.replies["ShowJob"] = REPLY
    assert redrive("logs", 12, "-f").out == "done\n"


def test_the_newest_output_is_followed_though_its_number_is_beyond_what_is_shown(
    peer: Peer, redrive: Redrive
) -> None:
    output(peer, b"done\n")
    history = [Attempt(execution=n, attempt=n, life=1) for n in (29_999, 30_000)]
    peer.replies["ShowJob"] = msgspec.structs.replace(REPLY, history=history)
    assert redrive("logs", 12, "-f").out == "done\n"
    assert {asked.attempt for asked in peer.asked_for("ReadLog")} == {30_000}


def test_why_tells_the_reason_and_the_values_behind_it(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Why"] = queries.WhyReply(
        id="12", state="queued", code="paused", text="queue bulk is paused",
        saw={"by": "uid 0"}, hint="`redrive resume bulk`",
    )  # fmt: skip
    assert redrive("why", 12).out == (
        "12 is queued: queue bulk is paused\n  by  uid 0\n  `redrive resume bulk`\n"
    )
    told = redrive("why", 12, "--json").object
    assert (told["id"], told["code"]) == (12, "paused")


def test_waiting_exits_by_how_they_ended(peer: Peer, redrive: Redrive) -> None:
    def ends(*states: JobState) -> None:
        jobs = [Job(id=12 + at, task="t", queue="q", state=each) for at, each in enumerate(states)]
        peer.replies["ListJobs"] = JobPage(jobs=jobs, after=None, as_of=1)

    ends(JobState.DONE, JobState.DONE)
    assert redrive("wait", 12, 13).code == 0
    ends(JobState.DONE, JobState.CANCELLED)
    said = redrive("wait", "12,13", "--json")
    assert (said.code, said.lines) == (
        1,
        [{"id": 12, "state": "done"}, {"id": 13, "state": "cancelled"}],
    )
    ends(JobState.DONE, JobState.RETRY)
    assert redrive("wait", "12,13", "--timeout", "50ms").code == 124
    assert redrive("wait").code == 2


def test_waiting_tells_of_every_job_though_a_page_has_few(peer: Peer, redrive: Redrive) -> None:
    def one(asked: ListJobs) -> JobPage:
        id = int(asked.after or "14") - 1
        job = Job(id=id, task="t", queue="q", state=JobState.RETRY)
        return JobPage(jobs=[job], after=str(id) if id > 12 else None, as_of=1)

    peer.replies["ListJobs"] = one
    said = redrive("wait", "12,13", "--timeout", "50ms", "--json")
    assert said.lines == [{"id": 12, "state": "retry"}, {"id": 13, "state": "retry"}]


@pytest.mark.parametrize("arguments", [("logs", 12), ("logs", 12, "--json")])
def test_where_output_is_that_is_not_here_is_told(
    peer: Peer, redrive: Redrive, arguments: tuple[object, ...]
) -> None:
    where = "node b ran this attempt and has its output: ask the daemon there"
    peer.replies["ReadLog"] = LogReply(
        data=b"", offset=0, size=0, finished=True, attempt=1, execution=1, warning=where
    )
    assert redrive(*arguments).err == f"redrive: {where}\n"


def test_through_a_pipe_a_row_is_one_line_and_a_long_error_is_cut(
    peer: Peer, redrive: Redrive
) -> None:
    error = ErrorRecord(
        error_type="disk", category="transient", message="line one\n" + "x" * 4000 + "\nend"
    )
    job = Job(id=12, task="t", queue="q", state=JobState.DEAD, error=error)
    peer.replies["ListJobs"] = JobPage(jobs=[job], after=None, as_of=1)
    _, row = redrive("jobs").out.splitlines()
    said = row[row.index("disk: ") :]
    assert said.startswith("disk: line one xxx")
    assert (len(said), said[-1]) == (200, "…")
    assert redrive("jobs", "--json").object["error"]["message"] == error.message


def test_waiting_too_long_tells_where_they_are(peer: Peer, redrive: Redrive) -> None:
    jobs = [
        Job(id=12 + at, task="t", queue="q", state=state)
        for at, state in enumerate((JobState.DONE, JobState.RETRY))
    ]
    peer.replies["ListJobs"] = JobPage(jobs=jobs, after=None, as_of=1)
    peer.replies["ShowRun"] = queries.RunReply(run=Run(id="r7", pipeline="p", state="running"))
    said = redrive("wait", "12,13", "r7", "--timeout", "50ms", "--json")
    assert said.code == 124
    assert said.lines == [
        {"id": 12, "state": "done"},
        {"id": 13, "state": "retry"},
        {"id": "r7", "state": "running"},
    ]
