"""Whatever happens to a batch, its counts are those of its rows."""

from __future__ import annotations

from collections import Counter
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from sqlalchemy import Connection, text

from redrive.errors import RedriveError, WrongState
from redrived.store import job_pages
from redrived.store.actions import Act, act
from redrived.store.picking import InHand
from redrived.store.redrives import NewRedrive, Portion, create, requeue_portion
from redrived.store.tables import jobs
from redrived.store.undo import undo
from support.ground import Ground
from support.runs import Track, step


def recounted(connection: Connection) -> dict[str, Any]:
    """The same counts, from the rows."""

    def ask(query: str) -> Any:
        return {tuple(row[:-1]): row[-1] for row in connection.execute(text(query)) if row[-1]}

    joined = "FROM steps JOIN runs ON runs.id = steps.run_id"
    gated = "FROM steps WHERE batch IS NOT NULL AND name = 'download'"
    return {
        "runs": ask("SELECT state, count(*) FROM runs GROUP BY state"),
        "phases": ask(f"SELECT name, steps.state, count(*) {joined} GROUP BY name, steps.state"),
        "unsettled": ask(f"SELECT round, count(*) {gated} AND state = 'waiting' GROUP BY round"),
        "waiting": ask(f"SELECT round, count(*) {gated} AND state = 'gated' GROUP BY round"),
        "first_pass": ask(
            f"SELECT round, count(*) {gated} AND passed = 0"
            " AND state IN ('waiting', 'gated', 'clearing', 'live', 'retrying') GROUP BY round"
        ),
    }


def counted(connection: Connection) -> dict[str, Any]:
    def ask(query: str) -> Any:
        return {tuple(row[:-1]): row[-1] for row in connection.execute(text(query)) if row[-1]}

    row = connection.execute(text("SELECT * FROM batches")).mappings().one()
    states = ("running", "done", "failed", "cancelled")
    return {
        "runs": {(state,): row[state] for state in states if row[state]},
        "phases": ask("SELECT step, state, n FROM phases"),
        "unsettled": ask("SELECT round, unsettled FROM gates"),
        "waiting": ask("SELECT round, waiting FROM gates"),
        "first_pass": ask("SELECT round, first_pass FROM gates"),
    }


class Chance:
    """Does one thing after another to a batch, as a seed has it."""

    def __init__(self, ground: Ground, seed: int) -> None:
        self.ground = ground
        self.random = Random(seed)
        download = step("download", gate="batch", delay=60, retry_together=True, clear="other")
        self.track = Track(ground, step("request"), download, step("index"))
        self.running: list[InHand] = []
        self.runs = 0
        self.redriven: list[int] = []

    def go(self) -> None:
        often = [self.take, self.complete, self.pass_time] * 4
        seldom = [self.start, self.fail, self.retry, self.requeue, self.requeue, self.cancel]
        seldom += [self.redrive, self.undo, self.requeue_a_job]
        self.random.choice(often + seldom)()

    def start(self) -> None:
        n = self.random.randint(1, 4)
        self.runs += n
        self.track.start_many(n, batch="b")

    def take(self) -> None:
        self.running += self.ground.take(self.random.randint(1, 4))

    def complete(self) -> None:
        self.track.complete(self._some())

    def fail(self) -> None:
        for job in self._some(most=1):
            self.track.fail_job(job)

    def retry(self) -> None:
        for job in self._some():
            self.track.fail_job(job, retry_in=self.random.choice([1, 30, 300]))

    def pass_time(self) -> None:
        self.ground.clock.move(self.random.choice([1, 30, 61]))
        self.track.promote()
        self.track.open_gates(self.random.choice([1, 3, 500]))

    def cancel(self) -> None:
        self._on_a_run("cancel")

    def requeue(self) -> None:
        from_step = self.random.choice([None, "request", "download"])
        self._on_a_run("requeue", force=True, again=True, from_step=from_step)

    def redrive(self) -> None:
        chosen = self.ground.do(create, NewRedrive(by="ann"))
        if chosen.id is not None:
            wish = Portion(redrive=chosen.id, n=3, by="ann", force=True)
            self.ground.do(requeue_portion, wish)
            self.redriven.append(chosen.id)

    def undo(self) -> None:
        if self.redriven:
            with suppress(WrongState):  # all of it has begun by now
                self.ground.do(undo, (self.redriven.pop(), "ann"))

    def requeue_a_job(self) -> None:
        is_ended = jobs.c.state.in_(("dead", "cancelled"))
        ended = self.ground.ask(job_pages.matching, is_ended, None)
        if ended:
            wish = Act(verb="requeue", jobs=[self.random.choice(ended)], by="ann", force=True)
            self.ground.do(act, wish)

    def _on_a_run(self, verb: str, **more: Any) -> None:
        if not self.runs:
            return
        try:
            acted = self.track.do(verb, self.random.randint(1, self.runs), **more)
        except RedriveError:
            return  # it is not in a state for that
        ended = {each.id for each in acted.running}
        for job in [job for job in self.running if job.id in ended]:
            self.running.remove(job)
            self.track.cancelled(job)

    def _some(self, most: int = 3) -> list[InHand]:
        self.random.shuffle(self.running)
        n = self.random.randint(1, most)
        chosen, self.running = self.running[:n], self.running[n:]
        return chosen


@pytest.mark.parametrize("seed", range(8))
def test_counts_are_those_of_the_rows_whatever_happens(ground: Ground, seed: int) -> None:
    chance = Chance(ground, seed)
    chance.start()
    for _ in range(120):
        chance.go()
        assert ground.ask(counted) == ground.ask(recounted)


@pytest.mark.parametrize("seed", range(8, 12))
def test_every_run_ends_once_nothing_more_is_done_to_it(ground: Ground, seed: int) -> None:
    chance = Chance(ground, seed)
    chance.start()
    for _ in range(40):
        chance.go()
    for _ in range(40):
        chance.running += ground.take(100)
        chance.track.complete(chance.running)
        chance.running = []
        ground.clock.move(301)
        chance.track.promote()
        chance.track.open_gates()
    ends = Counter(run.state for run in chance.track.page(limit=1_000).runs)
    assert ends["running"] == 0
    assert ends.total() == chance.runs
