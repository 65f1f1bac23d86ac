"""Gathers what holds for a job, so that `engine.why` can say it."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec.structs import replace

from redrive.errors import NotFound, RedriveError
from redrive.history import history
from redrive.models import Attempt, Event, Job, Run
from redrive.protocol.queries import Why, WhyReply
from redrive.protocol.rows import GateRow, Pause
from redrived.api.server import Asker
from redrived.engine.attempt import Ending
from redrived.engine.definitions import TaskDefinition
from redrived.engine.engine import Engine
from redrived.engine.intake import check_ids
from redrived.engine.why import Circumstances, explain
from redrived.engine.why_ending import BeingEnded
from redrived.engine.why_run import explain_run
from redrived.processes.spawn import MORE_FILES, NoRoom
from redrived.store import batch_pages, circumstances, events, jobs, run_pages
from redrived.store.circumstances import Lane
from redrived.store.run_pages import run_number
from redrived.store.store import Connection


async def why(engine: Engine, asker: Asker, request: Why) -> WhyReply:
    if request.id.startswith("r"):
        return await _why_run(engine, request.id)
    [id] = check_ids([request.id])
    now = engine.clock.now()

    def ask(
        connection: Connection,
    ) -> tuple[Job | None, Attempt | None, Lane | None, Sequence[Event]]:
        job = jobs.get(connection, id)
        if job is None:
            return None, None, None, ()
        told = events.last_executions(connection, id, 1)
        past = history(*told)
        definition = engine.definitions.tasks.get(job.task)
        queue = engine.definitions.queue_rules.get(job.queue)
        since_queue = now - queue.rate[1] if queue and queue.rate else None
        since_task = now - definition.rate[1] if definition and definition.rate else None
        lane = circumstances.lane(connection, id, since_queue, since_task)
        return job, past[-1] if past else None, lane, told.events

    job, last, lane, told = await engine.store.read(ask)
    if job is None or lane is None:
        raise NotFound(f"there is no job {id}", hint="`redrive jobs` lists them")
    end = _end(engine, job, lane, told)
    found = _circumstances(engine, job, last, lane, _hold(told), now)
    return explain(job, replace(found, end=end))


def _hold(past: Sequence[Event]) -> Pause | None:
    """By whom it was held last; what has run since is held for another reason."""
    for event in reversed(past):
        if event.type in ("job_released", "action_started"):
            return None
        if event.type == "job_held":
            by, why = event.data["by"], event.data.get("reason")
            return Pause(kind="job", name=str(event.job), at=event.at, by=by, why=why)
    return None


def _end(engine: Engine, job: Job, lane: Lane, past: Sequence[Event]) -> BeingEnded | None:
    """What is known of an end that is under way; of one on another node, what rows say."""
    attempt = engine.attempts.get(job.id)
    if attempt is None:
        unkillable = _unkillable(past)
        if lane.ending is None and not unkillable:
            return None
        return BeingEnded(why=lane.ending or "", by=lane.ending_by, unkillable=unkillable)
    unkillable = attempt.unkillable
    if attempt.ending is None and not unkillable:
        return None
    is_killed = attempt.ending is Ending.KILL
    return BeingEnded(
        why=attempt.ending or "",
        by=attempt.by,
        since=attempt.ending_since,
        grace=0.0 if is_killed else attempt.definition.task.grace,
        is_call=attempt.definition.kind == "http",
        unkillable=unkillable,
    )


def _unkillable(past: Sequence[Event]) -> tuple[int, ...]:
    """What its node last told of processes that do not end, should nothing have come after that."""
    if past and past[-1].type == "action_unkillable":
        return tuple(past[-1].data["unkillable"])
    return ()


async def _why_run(engine: Engine, id: str) -> WhyReply:
    def ask(connection: Connection) -> tuple[Run | None, list[GateRow]]:
        run = run_pages.get(connection, run_number(id))
        return run, batch_pages.gates_of(connection, run.batch) if run else []

    run, gates = await engine.store.read(ask)
    if run is None:
        raise NotFound(f"there is no run {id}", hint="`redrive runs` lists them")
    return explain_run(run, gates)


def _no_room(engine: Engine, definition: TaskDefinition | None) -> RedriveError | None:
    """What the machine has too little of for such a job; a worker has all it needs."""
    kind = definition.kind if definition else None
    if kind == "http" and engine.http.is_short:
        return NoRoom("no call can be made now: few descriptors are left", hint=MORE_FILES)
    return engine.commands.trouble if kind == "command" else None


def _circumstances(
    engine: Engine, job: Job, last: Attempt | None, lane: Lane, hold: Pause | None, now: int
) -> Circumstances:
    definitions = engine.definitions
    definition = definitions.tasks.get(job.task)
    queue = definitions.queue_rules.get(job.queue)
    task = definition.task if definition else None
    pool = engine.python.pools.get(definition.pool) if definition and definition.pool else None
    workers = pool.workers if pool else []
    busy = engine.dispatcher.busy()
    breaker = engine.breakers.get(job.task)
    queue_rate = queue.rate if queue else None
    task_rate = definition.rate if definition else None
    return Circumstances(
        now=now,
        waits=lane.waits,
        hold=hold,
        is_known=definitions.knows(job.task),
        queue_pause=engine.pauses.get("queue", job.queue),
        task_pause=engine.pauses.get("task", job.task),
        breaker=breaker.state if breaker else None,
        breaker_why=breaker.why if breaker else "",
        probe_at=breaker.probe_at if breaker else 0,
        trouble=engine.store.writer.trouble_in_words,
        is_draining=not engine.dispatcher.is_open,
        pool=pool.name if pool else None,
        pool_trouble=pool.trouble if pool else None,
        no_room=_no_room(engine, definition),
        workers=sum(worker.can_work for worker in workers),
        idle_workers=sum(worker.can_work and not worker.is_busy for worker in workers),
        starting_workers=sum(worker.is_starting for worker in workers),
        busy=busy.total(),
        slots=definitions.config.daemon.concurrency,
        reserved=sum(
            max(0, rules.reserved - busy.get(name, 0))
            for name, rules in definitions.queue_rules.items()
            if name != job.queue
        ),
        queue_running=lane.queue_running,
        queue_limit=queue.concurrency if queue else None,
        queue_rate=definitions.queues[job.queue].rate if job.queue in definitions.queues else None,
        task_running=lane.task_running,
        task_limit=task.concurrency if task else None,
        task_rate=task.rate if task else None,
        queue_rate_used=queue_rate is not None and lane.queue_starts >= queue_rate[0],
        task_rate_used=task_rate is not None and lane.task_starts >= task_rate[0],
        limit_key=lane.limit_key,
        key_limit=task.concurrency if task else None,
        key_running=lane.key_running,
        ahead=lane.ahead,
        last=last,
        cleared_by=lane.cleared_by,
    )
