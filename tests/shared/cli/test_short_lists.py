from __future__ import annotations

import pytest

from redrive.cli import words
from redrive.clock import SECOND
from redrive.instants import from_iso
from redrive.models import Run
from redrive.protocol import queries
from redrive.protocol.rows import BatchRow, GroupRow, QueueRow
from support.peer import Peer

from .conftest import Redrive, Said

PAUSED_AT = from_iso("2026-05-28T00:00:00Z")
QUEUES = [
    QueueRow(name="manual", priority=100, reserved=1),
    QueueRow(name="bulk", priority=10, concurrency=6, paused=True, paused_at=PAUSED_AT),
    QueueRow(name="default", priority=0, concurrency=2, states={"dead": 1}),
]


@pytest.fixture(autouse=True)
def short_lists(peer: Peer) -> None:
    peer.replies["ListQueues"] = queries.QueuePage(queues=QUEUES, as_of=1)
    peer.replies["ListSchedules"] = queries.SchedulePage(schedules=[], as_of=1)
    peer.replies["ListNodes"] = queries.NodePage(nodes=[], as_of=1)
    peer.replies["ListBatches"] = queries.BatchPage(batches=[], as_of=1)
    peer.replies["ListGroups"] = queries.GroupPage(groups=[], as_of=1)
    peer.replies["ListRuns"] = queries.RunPage(runs=[], after=None, as_of=1)
    peer.replies["ListJobs"] = queries.JobPage(jobs=[], after=None, as_of=1)


def names(said: Said, key: str = "name") -> list[str]:
    return [line[key] for line in said.lines]


@pytest.mark.parametrize(
    "verb", ["jobs", "runs", "batches", "groups", "queues", "schedules", "nodes"]
)
def test_every_list_can_be_narrowed_ordered_and_cut(redrive: Redrive, verb: str) -> None:
    word = "pipeline:x" if verb == "runs" else "queue:x" if verb in ("jobs", "groups") else "x"
    assert redrive(verb, "--where", word, "--limit", 1, "--json").code == 0
    order = "priority" if verb == "queues" else "state"
    assert redrive(verb, "--sort", order, "--limit", 1, "--json").code == 0


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("queue:bulk", ["bulk"]),
        ("name:*ul*", ["bulk", "default"]),
        ("!paused:true", ["manual", "default"]),
        ("concurrency:2,6", ["bulk", "default"]),
        ("ma", ["manual"]),
        ("ul paused:true", ["bulk"]),
        ("priority>=10", ["manual", "bulk"]),
        ("priority>0 priority<100", ["bulk"]),
        ("name:bulk name:manual", ["manual", "bulk"]),
        ("name:bulk,manual", ["manual", "bulk"]),
        ("concurrency>2", ["bulk"]),
        ("!concurrency>0", ["manual"]),
        ('"ul" !name:bulk', ["default"]),
        ("UL", ["bulk", "default"]),
        ("states:dead", ["default"]),
        ("paused_at:2026-*", ["bulk"]),
    ],
)
def test_rows_are_narrowed_by_what_json_shows_of_them(
    redrive: Redrive, where: str, found: list[str]
) -> None:
    assert names(redrive("queues", "--where", where, "--json")) == found


def test_rows_are_ordered_by_a_key_and_those_without_it_come_last(redrive: Redrive) -> None:
    assert names(redrive("queues", "--sort", "concurrency", "--json")) == [
        "default",
        "bulk",
        "manual",
    ]
    assert names(redrive("queues", "--sort", "-priority", "--json"))[0] == "manual"


def test_a_list_that_was_cut_goes_on_behind_its_last_row(redrive: Redrive) -> None:
    first = redrive("queues", "--limit", 2, "--json")
    assert names(first) == ["manual", "bulk"]
    assert "there are more: --after bulk" in first.err
    assert names(redrive("queues", "--after", "bulk", "--json")) == ["default"]


def test_no_more_groups_are_asked_for_than_are_shown(peer: Peer, redrive: Redrive) -> None:
    row = GroupRow(
        fingerprint="ab", error_type="t", category="transient", signature="s", dead=1,
        retrying=0, first_at=0, last_at=0, tasks={"t": 1}, queues={"q": 1}, sample=1,
    )  # fmt: skip
    peer.replies["ListGroups"] = queries.GroupPage(groups=[row], as_of=1)
    assert names(redrive("groups", "--limit", 1, "--json"), "fingerprint") == ["ab"]
    assert peer.asked_for("ListGroups")[0].limit == 2


def test_a_filter_of_batches_looks_at_every_page_of_them(peer: Peer, redrive: Redrive) -> None:
    def page(request: queries.ListBatches) -> queries.BatchPage:
        first = request.after is None
        row = BatchRow(
            name="new" if first else "old", pipeline="p", created_at=0,
            runs=1, running=0, done=1, failed=0, cancelled=0,
        )  # fmt: skip
        return queries.BatchPage(batches=[row], after="new" if first else None, as_of=1)

    peer.replies["ListBatches"] = page
    assert names(redrive("batches", "--where", "name:old", "--json")) == ["old"]
    assert names(redrive("batches", "--limit", 2, "--json")) == ["new", "old"]


@pytest.mark.parametrize(
    ("where", "found"),
    [
        ("failed>0", ["new"]),
        ("failed:0", ["old"]),
        ("batch:o*", ["old"]),
        ("age>1h", ["old"]),
        ("age<1h failed>=2", ["new"]),
        ("phases:parse", ["new"]),
    ],
)
def test_batches_are_found_by_their_numbers_and_their_age(
    peer: Peer, redrive: Redrive, where: str, found: list[str]
) -> None:
    now = words.now()
    new = BatchRow(
        name="new", pipeline="p", created_at=now, phases={"parse": {"done": 1}},
        runs=3, running=0, done=1, failed=2, cancelled=0,
    )  # fmt: skip
    old = BatchRow(
        name="old", pipeline="p", created_at=now - 7200 * SECOND,
        runs=1, running=0, done=1, failed=0, cancelled=0,
    )  # fmt: skip
    peer.replies["ListBatches"] = queries.BatchPage(batches=[new, old], as_of=1)
    assert names(redrive("batches", "--where", where, "--json")) == found


def test_runs_are_ordered_by_number(peer: Peer, redrive: Redrive) -> None:
    runs = [Run(id=f"r{n}", pipeline="p", state="done") for n in (10, 9, 2)]
    peer.replies["ListRuns"] = queries.RunPage(runs=runs, after=None, as_of=1)
    assert names(redrive("runs", "--sort", "id", "--json"), "id") == ["r2", "r9", "r10"]
    assert names(redrive("runs", "--sort", "-id", "--limit", 1, "--json"), "id") == ["r10"]


@pytest.mark.parametrize(
    ("option", "value", "code", "problem"),
    [
        ("--sort", "size", 2, "a queue has no 'size'"),
        ("--sort", "states", 2, "'states' has no order"),
        ("--where", "size:3", 2, "it is one of name, priority, reserved"),
        ("--where", "age>1h", 2, "unknown key `age`"),
        ("--where", "name>b", 2, "`name` cannot be compared"),
        ("--where", "priority:high", 2, "`priority` takes a number"),
        ("--where", "paused:maybe", 2, "it is one of true, false"),
        ("--where", "sort:name", 2, "unknown key `sort`"),
        ("--where", '"bulk', 2, "is never closed"),
        ("--after", "gone", 1, "no queue in this list is called 'gone'"),
    ],
)
def test_what_a_list_cannot_be_asked_is_said(
    redrive: Redrive, option: str, value: str, code: int, problem: str
) -> None:
    said = redrive("queues", option, value)
    assert (said.code, problem in said.err) == (code, True)
