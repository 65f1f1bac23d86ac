"""What definitions say, how runs go on by them, and what they show."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.clock import SECOND
from redrive.config.sections import Config, Pipeline, Queue, Retry, Shows, Step, Task
from redrive.config.spoken import OF_A_RUN
from redrive.lifecycle import JobState
from redrive.pipelines import (
    Definition,
    advance,
    decode,
    define,
    descendants,
    digest,
    draw,
    encode,
    status,
)
from redrive.pipelines.advance import Action, Enqueue, Fail, Finish, Gate, RunFacts, Skip
from redrive.pipelines.states import RunState, StepState

WAITING, GATED, CLEARING, LIVE, RETRYING, DONE, DEAD, CANCELLED, SKIPPED = StepState

CONFIG = Config(
    tasks={
        "work": Task(command=["true"], retry=5, operation="download", queue="bulk"),
        "clean": Task(command=["true"]),
    },
    queues={"bulk": Queue(operations=["request", "download"]), "manual": Queue()},
    retry={"slow": Retry(max_attempts=4)},
)


def pipeline(*steps: Step, **more: Any) -> Definition:
    return define("p", Pipeline(steps=list(steps), **more), CONFIG)


def step(name: str, **more: Any) -> Step:
    fields: dict[str, Any] = {"name": name, "task": "work", **more}
    return Step(**fields)


def go_on(definition: Definition, *states: StepState, **more: Any) -> list[Action]:
    named = dict(zip((each.name for each in definition.steps), states, strict=True))
    facts: dict[str, Any] = {"id": 7, "args": {}, "batch": None, "now": 0, **more}
    return advance(definition, RunFacts(states=named, **facts))


def test_every_name_that_a_config_may_speak_of_is_there() -> None:
    spoken = {name: f"{{{{ {name} }}}}" for name in OF_A_RUN}
    [enqueue] = go_on(pipeline(step("a", args=spoken)), WAITING, batch="b", key="k")
    assert enqueue == Enqueue(
        step="a", args={"args": {}, "batch": "b", "key": "k", "run": "r7", "steps": {}}
    )


# ---- definitions ---------------------------------------------------------------------------


def test_a_step_without_needs_follows_the_one_before_it() -> None:
    definition = pipeline(step("a"), step("b"), step("c", needs=[]))
    assert [each.needs for each in definition.steps] == [(), ("a",), ()]


def test_a_definition_leaves_nothing_open() -> None:
    lane = pipeline(step("a")).steps[0].lane
    assert (lane.queue, lane.operation, lane.policy.max_attempts) == ("bulk", "download", 5)
    other = pipeline(step("a", queue="manual", operation="request")).steps[0].lane
    assert (other.queue, other.operation) == ("manual", "request")


@pytest.mark.parametrize(
    ("retry", "attempts"),
    [(None, 5), (False, 1), (True, 3), (2, 2), ("slow", 4), (Retry(max_attempts=9), 9)],
)
def test_a_step_writes_its_retry_in_any_form_and_overrides_the_task(
    retry: Any, attempts: int
) -> None:
    assert pipeline(step("a", retry=retry)).steps[0].lane.policy.max_attempts == attempts


def test_a_stored_definition_reads_back_the_same() -> None:
    definition = pipeline(
        step("a", args={"n": "{{ args.n }}"}, shows=Shows(done="STORED")),
        step("b", gate="batch", delay=900.0, clear="clean", when="args.n"),
        shows=Shows(failed="FAILED"),
        mode="bulk",
    )
    assert decode(encode(definition)) == definition


def test_a_change_of_the_config_that_a_step_uses_is_another_version() -> None:
    changed = Config(tasks={**CONFIG.tasks, "work": Task(command=["true"], retry=6, queue="bulk")})
    one, other = pipeline(step("a")), define("p", Pipeline(steps=[step("a")]), changed)
    assert digest(encode(one)) != digest(encode(other))
    assert digest(encode(one)) == digest(encode(pipeline(step("a"))))


def test_descendants_are_all_that_follow() -> None:
    definition = pipeline(step("a"), step("b"), step("c", needs=["a"]), step("d", needs=["b"]))
    assert descendants(definition, ["b"]) == {"d"}
    assert descendants(definition, ["a"]) == {"b", "c", "d"}


# ---- how runs go on ------------------------------------------------------------------------


def test_nothing_is_done_while_a_step_is_live() -> None:
    assert go_on(pipeline(step("a"), step("b")), LIVE, WAITING) == []
    assert go_on(pipeline(step("a"), step("b")), RETRYING, WAITING) == []


def test_the_next_step_is_enqueued_and_its_delay_counted_from_now() -> None:
    definition = pipeline(step("a"), step("b", delay=60.0))
    assert go_on(definition, DONE, WAITING, now=5) == [
        Enqueue(step="b", scheduled_for=60 * SECOND + 5)
    ]


def test_a_run_is_done_when_all_of_it_is() -> None:
    definition = pipeline(step("a"), step("b"))
    assert go_on(definition, DONE, SKIPPED) == [Finish(state=RunState.DONE)]


@pytest.mark.parametrize("name", ["b", "fetchURL", "parse-2"])
def test_a_failed_step_whose_name_is_no_word_is_named_as_it_is(name: str) -> None:
    [skip, _] = go_on(pipeline(step(name), step("next")), DEAD, WAITING)
    assert skip == Skip(step="next", why=f"Step {name} failed; next skipped")


def test_what_follows_a_failure_is_skipped_and_says_after_what() -> None:
    definition = pipeline(step("request"), step("download"), step("index"))
    assert go_on(definition, DEAD, WAITING, WAITING) == [
        Skip(step="download", why="Request failed; download skipped"),
        Skip(step="index", why="Request failed; index skipped"),
        Finish(state=RunState.FAILED),
    ]


def test_a_branch_goes_on_while_another_has_failed() -> None:
    definition = pipeline(
        step("a"),
        step("left", needs=["a"]),
        step("right", needs=["a"]),
        step("r2", needs=["right"]),
    )
    assert go_on(definition, DONE, DEAD, LIVE, WAITING) == []
    assert go_on(definition, DONE, DEAD, DONE, WAITING) == [Enqueue(step="r2")]
    assert go_on(definition, DONE, DEAD, DONE, DONE) == [Finish(state=RunState.FAILED)]


def test_a_skipped_step_lets_the_next_one_run() -> None:
    definition = pipeline(step("a"), step("b", when="args.go"), step("c"))
    assert go_on(definition, DONE, WAITING, WAITING, args={"go": False}) == [
        Skip(step="b", why="`args.go` does not hold"),
        Enqueue(step="c"),
    ]


def test_a_step_knows_of_one_before_it_that_is_skipped_at_the_same_moment() -> None:
    definition = pipeline(
        step("a"),
        step("b", when="args.go"),
        step("c", when="steps.b.state == 'skipped'", args={"of_b": "{{ steps.b.result }}"}),
    )
    actions = go_on(definition, DONE, WAITING, WAITING, args={"go": False})
    assert actions == [
        Skip(step="b", why="`args.go` does not hold"),
        Enqueue(step="c", args={"of_b": None}),
    ]


def test_a_condition_that_cannot_be_answered_fails_the_step() -> None:
    [fail, finish] = go_on(pipeline(step("a", when="args.go")), WAITING)
    assert isinstance(fail, Fail)
    assert fail.in_condition
    assert finish == Finish(state=RunState.FAILED)


def test_arguments_know_results_run_batch_and_key() -> None:
    args = {"n": "{{ steps.a.result.n + 1 }}", "of": "{{ run }}/{{ batch }}/{{ key }}"}
    definition = pipeline(step("a"), step("b", args=args))
    [enqueue] = go_on(
        definition, DONE, WAITING, results={"a": {"n": 1}}, batch="b1", key="k"
    )  # fmt: skip
    assert isinstance(enqueue, Enqueue)
    assert enqueue.args == {"n": 2, "of": "r7/b1/k"}


def test_arguments_that_no_job_may_have_fail_the_step() -> None:
    results = {"a": "x" * 2**20}
    definition = pipeline(step("a"), step("b", args={"all": "{{ steps.a.result }}"}))
    [fail, finish] = go_on(definition, DONE, WAITING, results=results)
    assert isinstance(fail, Fail)
    assert fail.why == "the arguments take 1048586 bytes, more than 1048576"
    assert finish == Finish(state=RunState.FAILED)


def test_a_gate_holds_a_run_of_a_batch_until_it_is_let_through() -> None:
    definition = pipeline(step("a"), step("b", gate="batch", delay=900.0))
    assert go_on(definition, DONE, WAITING, batch="b1") == [Gate(step="b")]
    let_through = go_on(definition, DONE, WAITING, batch="b1", let_through={"b"})
    assert let_through == [Enqueue(step="b")]


# ---- words ---------------------------------------------------------------------------------

S1 = pipeline(
    step("store", shows=Shows(done="STORED")),
    step("parse", shows=Shows(running="PARSING")),
    shows=Shows(queued="PENDING", done="COMPLETE", failed="FAILED"),
)


@pytest.mark.parametrize(
    ("state", "store", "parse", "job", "word"),
    [
        (RunState.RUNNING, LIVE, WAITING, JobState.QUEUED, "PENDING"),
        (RunState.RUNNING, DONE, LIVE, JobState.QUEUED, "STORED"),
        (RunState.RUNNING, DONE, LIVE, JobState.LEASED, "PARSING"),
        (RunState.RUNNING, DONE, RETRYING, JobState.RETRY, "PARSING"),
        (RunState.DONE, DONE, DONE, JobState.DONE, "COMPLETE"),
        (RunState.FAILED, DONE, DEAD, JobState.DEAD, "FAILED"),
        (RunState.CANCELLED, DONE, CANCELLED, JobState.CANCELLED, "cancelled"),
    ],
)
def test_a_run_shows_the_words_of_s1(
    state: RunState, store: StepState, parse: StepState, job: JobState, word: str
) -> None:
    steps = {"store": store, "parse": parse}
    current = "parse" if store is DONE else "store"
    last = "parse" if parse is DONE else "store" if store is DONE else None
    assert status(S1, state, steps, {current: job}, last) == word


def test_a_pipeline_is_drawn_with_what_is_special_about_each_step() -> None:
    definition = pipeline(
        step("request", retry=None),
        step("download", gate="batch", delay=900.0, retry_together=True, retry=False),
        step("log", needs=["request"], retry=False),
        step("join", needs=["download", "log"], when="args.x", clear="clean", retry=False),
    )
    assert draw(definition) == (
        "request  work (bulk) · 5 attempts\n"
        "├─ download  work (bulk) · 15m after, gate of the batch, retries together\n"
        "└─ log  work (bulk)\n"
        "   └─ join  work (bulk) · needs download too, when args.x, cleared by clean"
    )
