from __future__ import annotations

import msgspec
import pytest
from hypothesis import given

from redrive.clock import SECOND
from redrive.errors import Exit
from redrive.filters import (
    Compare,
    Equal,
    Filter,
    FilterProblem,
    Match,
    Sort,
    Text,
    complete,
    matches,
    parse,
    render,
)
from redrive.filters.states import possible_states
from redrive.lifecycle import JobState
from redrive.models import ErrorRecord, Job
from support.filter_strategies import NOW, filters, jobs

TIMEOUT = ErrorRecord(
    error_type="timeout",
    category="transient",
    message="Peer closed the connection",
    user_message="The other side went away",
    fingerprint="ab12",
)
JOB = Job(
    id=12,
    task="send_mail",
    queue="bulk",
    operation="request",
    priority=5,
    state=JobState.RETRY,
    attempts=2,
    available_at=NOW + 60 * SECOND,
    created_at=NOW - 7200 * SECOND,
    started_at=NOW - 100 * SECOND,
    error=TIMEOUT,
    run="r7",
    args={"to": "ada", "user": {"id": 42}, "urgent": True, "note": None},
)


def finds(text: str, job: Job = JOB) -> bool:
    return matches(parse(text), job, NOW)


def test_a_filter_is_read_term_by_term() -> None:
    assert parse('state:dead,retry !task:send_* age>2h attempt:1,2 "peer closed" sort:-next') == (
        Filter(
            terms=(
                Match(key="state", words=(("dead",), ("retry",))),
                Match(key="task", words=(("send_", ""),), negated=True),
                Compare(key="age", operator=">", amount=7200 * SECOND),
                Equal(key="attempt", amounts=(1, 2)),
                Text(glob=("peer closed",)),
            ),
            sort=(Sort(key="next", descending=True),),
        )
    )


@pytest.mark.parametrize(
    ("text", "same"),
    [
        ("age:>2h", "age>2h"),
        ("attempt=3", "attempt:3"),
        ("queue=bulk", "queue:bulk"),
        ("run:7", "run:r7"),
        ("age>120m", "age>2h"),
        ("  id:1   queue:bulk ", "id:1 queue:bulk"),
        ('task:"send"_mail', "task:send_mail"),
        ("sort:next sort:-id", "sort:next,-id"),
    ],
)
def test_there_are_two_ways_to_write_some_things(text: str, same: str) -> None:
    assert parse(text) == parse(same)


def test_quotes_take_wildcards_commas_and_colons_literally() -> None:
    assert parse(r'task:"a*b,c" "state:dead" "say \"hi\" \\"').terms == (
        Match(key="task", words=(("a*b,c",),)),
        Text(glob=("state:dead",)),
        Text(glob=('say "hi" \\',)),
    )


@pytest.mark.parametrize(
    "text",
    [
        "",
        "queue:bulk",
        "queue:mail,bulk",
        "queue:mail queue:bulk",  # the same key again is OR
        "queue:bulk state:retrying",  # another key is AND
        "!queue:mail",
        "!batch:x",  # what has no batch is not in batch x
        "task:send_*",
        "task:*_m*l",
        "error:Timeout",  # errors are matched without regard to capitals
        "group:ab*",
        "run:r7",
        "attempt>1 attempt<3",  # comparisons narrow, also on one key
        "attempt:1,2",
        "id=12",
        "priority>=5",
        "age>1h age<=2h",
        "age:2h",
        "next<5m",
        "!duration>1s",  # a job that waits has no duration
        "arg.to:ada",
        "arg.to:a*a",
        "arg.user.id:42",
        "arg.urgent:true",
        "arg.note:null",
        "!arg.missing:x",
        "state:retry held:no",
        "PEER",
        '"other side"',
        "send_mail",
        "closed*connection",
        "urgent",  # in the arguments, names and values
        "ADA",
    ],
)
def test_the_job_is_found(text: str) -> None:
    assert finds(text)


@pytest.mark.parametrize(
    "text",
    [
        "queue:mail",
        "queue:Bulk",
        "queue:bul",
        "queue:bulk state:dead",
        "!queue:mail,bulk",
        "!queue:mail !queue:bulk",
        "task:send_",
        "task:send_*send_mail",
        "batch:*",
        "attempt>2",
        "age>2h",
        "age:1h",
        "next<1m",
        "duration>0",
        "arg.user:42",
        "arg.user.id.x:42",
        "arg.missing:*",
        "state:scheduled",
        "state:held",
        "peer closed nonsense",
        "!peer",
    ],
)
def test_the_job_is_not_found(text: str) -> None:
    assert not finds(text)


def test_the_words_of_the_screen_are_states_too() -> None:
    running = msgspec.structs.replace(JOB, state=JobState.LEASED)
    later = msgspec.structs.replace(JOB, state=JobState.QUEUED, held=True)
    assert finds("state:running", running)
    assert finds("state:leased", running)
    assert finds("duration>99", running)
    assert finds("state:scheduled", later)
    assert finds("state:held", later)
    assert finds("state:queued", later)
    assert not finds("state:scheduled", msgspec.structs.replace(later, available_at=NOW))


@pytest.mark.parametrize(
    ("text", "column", "what", "hint"),
    [
        ("queue:a stat:dead", 9, "unknown key `stat`", "did you mean `state`?"),
        ("http://x", 1, "unknown key `http`", "quote it if it is text"),
        ("state:dead,deaad", 12, "`deaad` is no value of `state`", "did you mean `dead`?"),
        ("held:maybe", 6, "`maybe` is no value of `held`", "it is one of yes, no"),
        ("queue:", 7, "a value is missing after `:`", ""),
        ("queue:a,,b", 9, "a value is missing after `,`", ""),
        ("state:dead !", 13, "a value is missing after `!`", ""),
        ('say "hi', 5, "this quote is never closed", ""),
        ("queue>3", 1, "`queue` cannot be compared", "write `queue:` and a value"),
        ("attempt>1,2", 1, "`attempt>` takes one value", ""),
        ("attempt:many", 9, "`attempt` takes a number, not `many`", ""),
        ("attempt:1*", 9, "`attempt` takes no `*`", ""),
        ("age>soon", 5, "`age` takes a time such as 90s, 15m or 2h, not `soon`", ""),
        ("run:seven", 5, "`seven` is no run", "a run looks like `r7`"),
        ("sort:agee", 6, "nothing is sorted by `agee`", "did you mean `age`?"),
        ("!sort:age", 2, "a sort is written `sort:key` or `sort:-key`", ""),
        ("arg.:x", 1, "unknown key `arg.`", "an argument is written `arg.NAME`"),
        ("*" * 21, 1, "more than 20 wildcards", ""),
        ("a " * 101, 202, "more than 100 terms", ""),
        ("id:" + "1," * 501, 1004, "more than 500 values", ""),
        ("arg.a:b\0", 8, "no text holds a NUL character", ""),
        ("a" * 4001, 4001, "the filter is longer than 4000 characters", ""),
    ],
)
def test_a_bad_filter_is_refused_with_its_column_and_what_is_near(
    text: str, column: int, what: str, hint: str
) -> None:
    with pytest.raises(FilterProblem) as caught:
        parse(text)
    problem = caught.value
    assert (problem.column, problem.what, problem.hint) == (column, what, hint)
    assert problem.message == f"column {column} of the filter: {what}"
    assert problem.exit_code is Exit.USAGE


def test_the_picture_of_a_problem_points_at_it() -> None:
    with pytest.raises(FilterProblem) as caught:
        parse("queue:a stat:dead")
    assert caught.value.picture == (
        "queue:a stat:dead\n        ^ unknown key `stat`; did you mean `state`?"
    )


@given(filters)
def test_what_is_rendered_is_read_back_as_the_same_filter(filter: Filter) -> None:
    assert parse(render(filter)) == filter


@given(filters)
def test_a_filter_survives_the_wire(filter: Filter) -> None:
    assert msgspec.msgpack.decode(msgspec.msgpack.encode(filter), type=Filter) == filter


@given(filters, jobs())
def test_what_a_filter_lets_through_is_in_a_state_that_is_possible(
    filter: Filter, job: Job
) -> None:
    assert job.state in possible_states(filter) or not matches(filter, job, NOW)


@pytest.mark.parametrize(
    ("text", "states"),
    [
        ("", "queued leased retry done dead cancelled"),
        ("state:dead,retrying", "dead retry"),
        ("state:dead state:held", "dead queued retry"),
        ("state:dead !state:dead", ""),
        ("!state:done", "queued leased retry dead cancelled"),
        ("!state:done,scheduled", "queued leased retry dead cancelled"),
        ("state:scheduled", "queued"),
        ("held:yes", "queued retry"),
        ("!held:no", "queued retry"),
        ("held:no", "queued leased retry done dead cancelled"),
        ("error:x !state:cancelled", "queued leased retry dead"),
        ("group:x next>0s", "queued retry"),
        ("!error:x", "queued leased retry done dead cancelled"),
        ("queue:a text age>1h", "queued leased retry done dead cancelled"),
    ],
)
def test_a_filter_says_in_which_states_it_finds_nothing(text: str, states: str) -> None:
    assert {str(state) for state in possible_states(parse(text))} == {*states.split()}


@given(filters, jobs())
def test_a_negated_filter_of_one_term_finds_the_other_jobs(filter: Filter, job: Job) -> None:
    for term in filter.terms:
        plain = Filter(terms=(msgspec.structs.replace(term, negated=False),))
        turned = Filter(terms=(msgspec.structs.replace(term, negated=True),))
        assert matches(plain, job, NOW) is not matches(turned, job, NOW)


@pytest.mark.parametrize(
    ("text", "start", "candidates"),
    [
        ("st", 0, ("state:", "step:")),
        ("queue:x !st", 9, ("state:", "step:")),
        ("ag", 0, ("age>",)),
        ("state:de", 6, ("dead",)),
        ("state:dead,re", 11, ("retry", "retrying")),
        ("queue:", 6, ("bulk", '"on demand"')),
        ("sort:-ne", 5, ("-next",)),
        ('"a b" hel', 6, ("held:",)),
        ("peer", 0, ()),
        ('"st', 0, ()),
    ],
)
def test_keys_are_completed_and_then_their_values(
    text: str, start: int, candidates: tuple[str, ...]
) -> None:
    known = {"queue": ["bulk", "on demand"]}
    found = complete(text + " task:x", len(text), known)
    assert (found.start, found.candidates) == (start, candidates)


def test_an_empty_filter_is_offered_every_key() -> None:
    assert "state:" in complete("", 0).candidates
    assert "sort:" in complete("", 0).candidates
