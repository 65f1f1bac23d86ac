"""The whole at a glance: counts, queues, nodes, what needs attention, what falls due."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from msgspec import Struct
from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.protocol.queries import ListNodes, ListQueues, NodePage, QueuePage, Status, StatusReply
from redrive.protocol.rows import Attention, DueRow, NodeRow, QueueRow
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.store import batch_pages, due, events, tallies
from redrived.store.store import Connection

SOON = 15 * 60 * SECOND  # how far ahead "what falls due" looks
MOST_NAMED = 5  # jobs in one line
OLD = 60 * SECOND  # a ready job that waits longer in a full queue deserves a word


class Waiting(Struct, frozen=True, kw_only=True):
    """How many jobs stand where, as one snapshot of the store has it."""

    counts: tallies.Counts
    aside: tallies.Counts  # those among them that wait for a time or a person
    oldest: dict[str, int]  # by queue: since when its oldest job could have begun
    paused_tasks: Collection[str]

    @staticmethod
    def read(connection: Connection, paused_tasks: Collection[str]) -> Waiting:
        counts, aside = tallies.read_with_waits(connection)
        oldest = due.oldest_ready(connection, without=paused_tasks)
        return Waiting(counts=counts, aside=aside, oldest=oldest, paused_tasks=paused_tasks)

    def ready_of(self, queue: str, task: str) -> int:
        aside = self.aside.get(queue, {}).get(task, {})
        queued = self.counts.get(queue, {}).get(task, {}).get("queued", 0)
        return queued - aside.get("scheduled", 0) - aside.get("held", 0)


async def status(engine: Engine, asker: Asker, request: Status) -> StatusReply:
    now = engine.clock.now()

    def ask(connection: Connection) -> tuple[int, Waiting, list[DueRow]]:
        return (
            events.head(connection),
            Waiting.read(connection, engine.pauses.names("task")),
            [
                *due.soon(connection, now, now + SOON),
                *batch_pages.gates_due(connection, now + SOON),
            ],
        )

    seq, waiting, soon = await engine.store.read(ask)
    queues = queue_rows(engine, waiting)
    nodes = await node_rows(engine)
    return StatusReply(
        seq=seq,
        at=now,
        epoch=engine.epoch,
        environment=engine.definitions.config.console.environment,
        node=engine.node,
        state=engine.state,
        trouble=engine.store.writer.trouble,
        states=tallies.by_state(waiting.counts),
        queues=queues,
        nodes=nodes,
        paused=engine.pauses.all(),
        attention=attention(engine, queues, nodes, waiting.counts, now),
        due=sorted([*soon, *engine.timetable.due(now + SOON)], key=lambda row: row.at),
        uptime=engine.clock.monotonic() - engine.started_at,
    )


async def list_queues(engine: Engine, asker: Asker, request: ListQueues) -> QueuePage:
    def ask(connection: Connection) -> tuple[int, Waiting]:
        return events.head(connection), Waiting.read(connection, engine.pauses.names("task"))

    seq, waiting = await engine.store.read(ask)
    return QueuePage(queues=queue_rows(engine, waiting), as_of=seq)


async def list_nodes(engine: Engine, asker: Asker, request: ListNodes) -> NodePage:
    return NodePage(nodes=await node_rows(engine), as_of=await engine.store.read(events.head))


async def node_rows(engine: Engine) -> list[NodeRow]:
    """Every node as it last told of itself, this one as it is now."""
    busy = engine.dispatcher.busy().total()
    return [
        replace(node, busy=busy) if node.name == engine.node else node
        for node in await engine.nodes()
    ]


def queue_rows(engine: Engine, waiting: Waiting) -> list[QueueRow]:
    """Every queue of the config, and those that only have jobs; the most urgent first."""
    states = tallies.by_queue(waiting.counts)
    aside = tallies.by_queue(waiting.aside)
    busy = engine.dispatcher.busy()
    rows: list[QueueRow] = []
    for name in engine.definitions.queues.keys() | states.keys():
        queue = engine.definitions.queues.get(name)
        pause = engine.pauses.get("queue", name)
        own, words = states.get(name, {}), aside.get(name, {})
        scheduled, held = words.get("scheduled", 0), words.get("held", 0)
        held_retries = words.get("held retry", 0)
        of_paused_tasks = sum(waiting.ready_of(name, task) for task in waiting.paused_tasks)
        rows.append(
            QueueRow(
                name=name,
                priority=queue.priority if queue else 0,
                reserved=queue.reserved if queue else 0,
                concurrency=queue.concurrency if queue else None,
                rate=queue.rate if queue else None,
                paused=pause is not None,
                paused_by=pause.by if pause else None,
                paused_at=pause.at if pause else None,
                paused_why=pause.why if pause else None,
                states=own,
                scheduled=scheduled,
                running=busy.get(name, 0),
                oldest_ready_at=waiting.oldest.get(name),
                ready=own.get("queued", 0) - scheduled - held - of_paused_tasks,
                held=held + held_retries,
                of_paused_tasks=of_paused_tasks,
                retrying=own.get("retry", 0) - held_retries,
            )
        )
    return sorted(rows, key=lambda row: (-row.priority, row.name))


def attention(
    engine: Engine,
    queues: Sequence[QueueRow],
    nodes: Sequence[NodeRow],
    counts: tallies.Counts,
    now: int,
) -> list[Attention]:
    """What an operator should know of, the worst first."""
    found: list[Attention] = []
    trouble = engine.store.writer.trouble_in_words
    if trouble is not None:
        found.append(_error("store", f"the store is in trouble: {trouble}", "", "overview"))
    if (gone := engine.unreachable()) is not None:
        found.append(_error("sockets", gone, "", "overview"))
    for node in nodes:
        if node.state in ("late", "lost"):
            ago = (now - node.beat_at) / SECOND
            text = f"node {node.name} {node.state}: last beat {ago:.0f} s ago"
            found.append(_error("node", text, node.name, "nodes"))
    for name, pool in engine.python.pools.items():
        if pool.trouble:
            found.append(_error("pool", f"pool {name}: {pool.trouble}", name, "nodes"))
        if pool.preload_failed:
            found.append(_warning("pool", f"pool {name}: {pool.preload_failed}", name, "nodes"))
    if (no_room := engine.commands.trouble) is not None:
        found.append(_error("commands", f"{no_room.message}: {no_room.hint}", "", "nodes"))
    found.extend(_unkillable(engine))
    if engine.outputs.trouble:
        found.append(_error("output", engine.outputs.complaint, "", "nodes"))
    for row in queues:
        dead = row.states.get("dead", 0)
        if dead:
            where = f"state:dead queue:{row.name}"
            found.append(_error("dead", f"{dead} dead in {row.name}", where, "dead"))
    for breaker in engine.breakers.all():
        text = f"breaker of {breaker.task} is {breaker.state}: {breaker.why}"
        found.append(_warning("breaker", text, f"task:{breaker.task}", "jobs"))
    if engine.outbox.has_refused:
        text = "orders in the outbox were refused: `redrive outbox` says why"
        found.append(_warning("outbox", text, screen="overview"))
    for pause in engine.pauses.all():
        text = f"{pause.kind} {pause.name} paused by {pause.by}"
        text += f": {pause.why}" if pause.why else ""
        if pause.kind == "schedule":
            found.append(_warning("paused", text, pause.name, "schedules"))
        else:
            found.append(_warning("paused", text, f"{pause.kind}:{pause.name} {_WAITING}"))
    for row in queues:
        if row.paused or row.oldest_ready_at is None or now - row.oldest_ready_at < OLD:
            continue
        waits = (now - row.oldest_ready_at) / SECOND
        text = f"{row.name}: the oldest ready job has waited {waits:.0f} s"
        found.append(_warning("waiting", text, f"queue:{row.name} {_WAITING}"))
    found.extend(_orphans(engine, counts))
    return found


def _unkillable(engine: Engine) -> list[Attention]:
    """Attempts that SIGKILL does not end."""
    stuck = [attempt for attempt in engine.attempts if attempt.unkillable]
    if not stuck:
        return []
    named = ", ".join(str(attempt.job.id) for attempt in stuck[:MOST_NAMED])
    more = f" and {len(stuck) - MOST_NAMED} more" if len(stuck) > MOST_NAMED else ""
    jobs = "job" if len(stuck) == 1 else "jobs"
    text = f"SIGKILL does not end {jobs} {named}{more}: `redrive why {stuck[0].job.id}`"
    where = f"id:{','.join(str(attempt.job.id) for attempt in stuck)}"
    return [_error("unkillable", text, where)]


def _orphans(engine: Engine, counts: tallies.Counts) -> list[Attention]:
    """Jobs that wait for a task the config does not have any more."""
    waiting: dict[str, int] = {}
    for tasks in counts.values():
        for task, states in tasks.items():
            if not engine.definitions.knows(task):
                waiting[task] = waiting.get(task, 0) + sum(
                    n for state, n in states.items() if state in ("queued", "retry")
                )
    return [
        _warning(
            "unknown task",
            f"{n} jobs wait for task {task}, which is not defined",
            f"task:{task} {_WAITING}",
        )
        for task, n in waiting.items()
        if n
    ]


_WAITING = "state:queued,retry"


def _error(kind: str, text: str, where: str = "", screen: str = "jobs") -> Attention:
    return Attention(kind=kind, text=text, where=where, screen=screen, severity="error")


def _warning(kind: str, text: str, where: str = "", screen: str = "jobs") -> Attention:
    return Attention(kind=kind, text=text, where=where, screen=screen)
