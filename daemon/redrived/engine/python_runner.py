"""Python jobs: handed to the workers of the pools, heard back from, settled."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter, defaultdict
from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from typing import Any

import msgspec

from redrive.clock import Clock
from redrived.engine import said
from redrived.engine.attempt import Attempt, Attempts, Ending
from redrived.engine.bad_rows import UNREADABLE
from redrived.engine.definitions import Definitions
from redrived.engine.job_facts import UnreadableArguments, arguments_of
from redrived.engine.pace import Pace
from redrived.engine.settler import Settler
from redrived.engine.signs import Signs
from redrived.engine.worker_executor import WorkerExecutor
from redrived.processes import wire
from redrived.processes.output import Outputs
from redrived.processes.pool import Pool
from redrived.processes.pool_worker import Loss, Worker
from redrived.processes.signals import signal_name
from redrived.store import ledger
from redrived.store.begin import Begun, begin
from redrived.store.picking import Berth, InHand
from redrived.store.settle import Completed
from redrived.store.store import Store
from redrived.store.unit import to_json

log = logging.getLogger(__name__)


class PythonRunner:
    """The pools' listener, and the dispatcher's way to them. Used by the main loop only."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        attempts: Attempts,
        settler: Settler,
        signs: Signs,
        pace: Pace,
        outputs: Outputs,
    ) -> None:
        self.pools: dict[str, Pool] = {}
        self.on_begun: Callable[[Attempt], None] = lambda attempt: None
        self.when_ran: list[Callable[[str, Sequence[float]], None]] = []  # a task, seconds of each
        self._store = store
        self._clock = clock
        self._attempts = attempts
        self._settler = settler
        self._signs = signs
        self._pace = pace
        self._outputs = outputs
        self._hands: dict[Worker, dict[int, InHand]] = {}  # those with something in them
        self._questions: set[asyncio.Task[None]] = set()

    def define(self, definitions: Definitions) -> None:
        """Tell every pool which tasks it runs, from now on."""
        self._definitions = definitions
        for name, pool in self.pools.items():
            pool.define(
                {
                    task.name: wire.TaskFacts(
                        python=task.task.python or "",
                        beat_every=task.beat_every,
                        env=dict(task.task.env) or None,
                        cwd=task.cwd,
                        limits=task.process_limits or None,
                    )
                    for task in definitions.tasks.values()
                    if task.pool == name
                }
            )

    # ---- what the dispatcher asks ----------------------------------------------------------

    def berths(self) -> Mapping[str, Sequence[Berth]]:
        return {
            name: [
                Berth(worker, share, empty=not worker.is_busy)
                for worker in pool.workers
                if (share := worker.share) > 0
            ]
            for name, pool in self.pools.items()
        }

    def busy(self) -> Counter[str]:
        """How many workers are busy, by the queue of what they hold."""
        return Counter(next(iter(hand.values())).queue for hand in self._hands.values())

    def hand(self, berth: Berth, begun: bool, at: int) -> None:
        """Hand leased jobs to a worker; the first of them may count as begun already."""
        worker: Worker = berth.worker
        first = berth.jobs[0] if begun else None
        fit = [job for job in berth.jobs if self._is_fit(job, has_begun=job is first)]
        if not fit:
            return
        begun = fit[0] is first
        hand = self._hands.setdefault(worker, {})
        for job in fit:
            hand[job.id] = job
        if begun:
            self._watch(worker, fit[0], at)
        for task, jobs in groupby(fit, key=lambda job: job.task):
            handed = [_handed(job) for job in jobs]
            worker.hand(handed, self._pace.expected(task), begun=begun)
            begun = False

    def _is_fit(self, job: InHand, *, has_begun: bool) -> bool:
        """Whether a worker can read it; what cannot be read would take others with it."""
        try:
            arguments_of(job)
        except UnreadableArguments as problem:
            began_at = None if has_begun else self._clock.now()
            self._settler.unfit(job, began_at, str(problem), UNREADABLE)
            return False
        return True

    def take_back(self) -> None:
        """Ask every worker for what it has not begun."""
        for worker in self._hands:
            worker.take_back()

    def passed(self, seconds: float) -> None:
        """Time has passed in which the daemon was awake."""
        for pool in self.pools.values():
            pool.passed(seconds)
            for worker in pool.workers:
                last = worker.process.begun_last()
                if last is None:
                    continue
                attempt = self._attempts.get(last.job, last.lease)
                if attempt is not None and attempt.ending is None:
                    attempt.is_importing = bool(last.is_importing)

    # ---- what the workers say --------------------------------------------------------------

    def ready(self, worker: Worker) -> None:
        self._settler.freed()

    def reported(self, worker: Worker, reports: list[wire.Report]) -> None:
        hand = self._hands.get(worker, {})
        done: list[Completed] = []
        spent: defaultdict[str, list[float]] = defaultdict(list)  # seconds, by task
        for report in reports:
            job = _taken(hand, report.job, report.lease)
            if job is None:
                continue
            self._forget_if_empty(worker, hand)  # before anybody hears of it and looks who is busy
            if report.outcome == "stale":
                self._renew(worker, job, report)
                continue
            attempt = self._pop(worker, job)
            spent[job.task].append(report.took / 1_000_000)
            try:
                if (success := self._ended(job, attempt, report)) is not None:
                    done.append(success)
            except Exception as problem:  # of this one; the others have ended all the same
                log.exception("what job %d reported makes no sense", job.id)
                began_at = None if attempt else self._clock.now()
                why = f"what it reported makes no sense: {problem}"
                self._settler.unfit(job, began_at, why, "invalid_report")
        for task, spans in spent.items():
            if self._is_marked_by(task):
                worker.retire()
            self._pace.note(task, len(spans), sum(spans))
            for tell in self.when_ran:
                tell(task, spans)
        self._settler.completed(done)
        self._settler.freed()

    def _ended(self, job: InHand, attempt: Attempt | None, report: wire.Report) -> Completed | None:
        """A success, to be told with others; anything else is settled here."""
        report = said.report(report)
        ended_at = end_of(report, attempt)
        too_long = report.wrote and self._cut_output(job)
        if attempt is not None or report.progress is not None:  # else it was over before it beat
            progress = report.progress and to_json(said.progress(*report.progress))
            self._signs.last(job, ended_at, progress)
        # Who swallows the exception that ends it has ended all the same.
        is_ended = attempt is not None and attempt.ending not in (None, Ending.DRAIN)
        if report.outcome == "done" and not too_long and not is_ended:
            return _completed(job, report, None if attempt else report.began, ended_at)
        self._settler.reported(job, report, attempt, ended_at, too_long=too_long)
        return None

    def _renew(self, worker: Worker, job: InHand, report: wire.Report) -> None:
        """It has an older copy of a module than the disk: a fresh one takes its place, and the job."""
        log.info(
            "job %d goes to a fresh worker: %s", job.id, report.failure and report.failure.message
        )
        worker.retire()
        self._return(worker, [job])

    def _is_marked_by(self, task: str) -> bool:
        """Whether a worker is not what it was after a job of it."""
        definition = self._definitions.tasks.get(task)
        return definition is not None and bool(definition.process_limits)

    def begun(self, worker: Worker, begun: wire.Begun) -> None:
        job = self._held(worker, begun.job, begun.lease)
        if job is None or self._attempts.get(job.id, job.lease) is not None:
            return
        self._watch(worker, job, begun.at)
        item = Begun(job.id, job.lease, begun.at, job.attempt, job.run_id)
        self._store.post(begin, item)

    def beat(self, worker: Worker, beat: wire.Beat) -> None:
        self.begun(worker, wire.Begun(beat.job, beat.lease, beat.at))
        attempt = self._attempts.get(beat.job, beat.lease)
        if attempt is None:
            return
        progress = None if beat.progress is None else to_json(said.progress(*beat.progress))
        metrics = said.metrics(beat.metrics)
        self._signs.beat(attempt, beat.at, progress, to_json(metrics) if metrics else None)

    def marked(self, worker: Worker, mark: wire.Mark) -> None:
        job = self._held(worker, mark.job, mark.lease)
        if job is not None:
            marked = ledger.Marked(_scope(job), mark.keys)
            self._store.post(ledger.mark, marked)

    def asked(self, worker: Worker, ask: wire.Ask) -> None:
        task = asyncio.create_task(self._answer(worker, ask))
        self._questions.add(task)
        task.add_done_callback(self._questions.discard)

    def gave_back(self, worker: Worker, jobs: list[tuple[int, int]]) -> None:
        hand = self._hands.get(worker, {})
        returned = [job for each in jobs if (job := _taken(hand, *each)) is not None]
        self._forget_if_empty(worker, hand)
        self._return(worker, returned)

    def lost(self, worker: Worker, loss: Loss) -> None:
        hand = self._hands.pop(worker, {})
        began = loss.begun
        current = _taken(hand, *began[:2]) if began else None
        self._return(worker, list(hand.values()))
        if current is not None and began is not None:
            attempt = self._attempts.pop(current.id, current.lease)
            self._settler.lost(
                current,
                attempt,
                began[2],
                how_it_died(loss),
                None if loss.code >= 0 or loss.why or loss.garbled else signal_name(-loss.code),
                wrote=loss.wrote,
                too_long=loss.wrote and self._cut_output(current),
                left=loss.left.told(),
            )
        self._settler.freed()

    def _held(self, worker: Worker, job: int, lease: int) -> InHand | None:
        """What a word of a worker is about, as long as the worker holds it by that lease."""
        held = self._hands.get(worker, {}).get(job)
        return held if held is not None and held.lease == lease else None

    def _forget_if_empty(self, worker: Worker, hand: Mapping[int, InHand]) -> None:
        """A worker that leaves with nothing in its hand says no word of it here."""
        if not hand:
            self._hands.pop(worker, None)

    def _return(self, worker: Worker, jobs: Sequence[InHand]) -> None:
        """Jobs that come back unbegun; what counted as begun at the hand-over is in the log."""
        unbegun: list[InHand] = []
        for job in jobs:
            attempt = self._pop(worker, job)
            if attempt is None:
                unbegun.append(job)
            else:
                self._settler.returned(job, attempt)
        self._settler.gave_back(unbegun)

    def _pop(self, worker: Worker, job: InHand) -> Attempt | None:
        """The attempt, if it was watched; what its worker prints from now on is not of it."""
        attempt = self._attempts.pop(job.id, job.lease)
        if attempt is not None:
            worker.process.output.disowned_by(job.id, job.execution)
        return attempt

    def _cut_output(self, job: InHand) -> bool:
        """Keep what the limit allows; whether it wrote more."""
        definition = self._definitions.tasks.get(job.task)
        if definition is None:
            return False
        return self._outputs.cut(job.id, job.execution, definition.task.limits.output)

    async def _answer(self, worker: Worker, ask: wire.Ask) -> None:
        job = self._held(worker, ask.job, ask.lease)
        if job is None:
            worker.answer(ask, None, "the job is no longer this worker's")
            return
        scope = _scope(job)
        try:
            if ask.question == "once":
                answer: Any = await self._store.submit(
                    ledger.claim, ledger.Claim(scope, str(ask.value))
                )
            else:
                keys = await self._store.read(ledger.marked, scope, str(ask.value or ""))
                answer = (keys, keys[-1] if len(keys) == ledger.PAGE else None)
        except Exception as error:  # noqa: BLE001 - whatever it is, the handler must hear of it
            worker.answer(ask, None, str(error))
        else:
            worker.answer(ask, answer)

    def _watch(self, worker: Worker, job: InHand, at: int) -> None:
        definition = self._definitions.tasks.get(job.task)
        if definition is not None:
            now = self._clock.monotonic()
            attempt = Attempt(job, definition, WorkerExecutor(worker), at, now)
            self._attempts.add(attempt)
            worker.process.output.owned_by(job.id, job.execution)
            self.on_begun(attempt)


def _taken(hand: dict[int, InHand], job: int, lease: int) -> InHand | None:
    """The job out of the hand, unless it is there by another lease."""
    held = hand.get(job)
    return hand.pop(job) if held is not None and held.lease == lease else None


def _handed(job: InHand) -> wire.HandedJob:
    return wire.HandedJob(
        job.task,
        job.id,
        job.lease,
        job.attempt,
        job.max_attempts,
        job.execution,
        msgspec.Raw(job.args.encode()),
        None if job.run_id is None else f"r{job.run_id}",
        job.step,
        job.batch,
    )


def _completed(job: InHand, report: wire.Report, began_at: int | None, ended_at: int) -> Completed:
    if not report.wrote and report.metrics is None:
        data = metrics = None
    else:
        metrics = to_json(report.metrics) if report.metrics else None
        told: dict[str, Any] = {}
        if report.wrote:
            told["log"] = f"{job.id}.{job.execution}"
        if report.metrics:
            told["metrics"] = report.metrics
        data = to_json(told)
    result = bytes(report.result)
    return Completed(
        job.id,
        job.lease,
        began_at,
        ended_at,
        job.attempt,
        job.queue,
        job.task,
        job.run_id,
        job.limit_key,
        None if result == b"null" else result.decode(),
        metrics,
        data,
    )


def end_of(report: wire.Report, attempt: Attempt | None) -> int:
    """By the worker's clock; but what was noticed meanwhile is not told of an attempt that is over."""
    ended_at = report.began + report.took
    return max(ended_at, attempt.noticed_at) if attempt else ended_at


def _scope(job: InHand) -> str:
    return f"job:{job.id}" if job.run_id is None else f"run:{job.run_id}"


def how_it_died(loss: Loss) -> str:
    if loss.garbled:
        problem = "what the worker sent made no sense: something wrote to its descriptors"
        return f"{problem} ({loss.garbled})"
    if loss.why:
        return f"the worker was ended: {loss.why}"
    if loss.code < 0:
        why = ", for the memory it used (see `dmesg`)" if loss.oom else ""
        return f"the worker process was killed by {signal_name(-loss.code)}{why}"
    return f"the worker process exited with code {loss.code}"
