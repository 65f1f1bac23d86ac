"""Starting runs, looking at them and at their batches."""

from __future__ import annotations

from redrive.errors import NotFound, UsageProblem
from redrive.models import Run
from redrive.orders import check_words, checked_args
from redrive.protocol.codec import that_fit
from redrive.protocol.commands import RunOrder as Wish
from redrive.protocol.commands import Start, Started
from redrive.protocol.envelope import ROOM
from redrive.protocol.queries import BatchPage, ListBatches, ListRuns, RunPage, RunReply, ShowRun
from redrived.api.large_runs import fitted
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.engine.intake import MOST_AT_ONCE, each
from redrived.store import batch_pages, events, run_pages
from redrived.store.run_pages import run_number
from redrived.store.runs import NewRun, RunOrder, start
from redrived.store.store import Connection

FEW = 100  # runs that are answered for one by one
LONGEST_PAGE = 1_000


async def start_runs(engine: Engine, asker: Asker, request: Start) -> Started:
    entry = engine.pipelines.latest(request.pipeline)
    if not 1 <= len(request.orders) <= MOST_AT_ONCE:
        raise UsageProblem(
            f"{len(request.orders)} runs cannot be started at once",
            hint=f"between 1 and {MOST_AT_ONCE} in one request",
        )
    check_words(("mode", request.mode))
    order = RunOrder(
        definition=entry.definition,
        version=entry.version,
        runs=each(request.orders, _new_run),
        mode=request.mode,
        by=asker.who,
    )
    begun = await engine.store.submit(start, order)
    ids = [run.id for run in begun]
    return Started(
        count=len(begun),
        created=sum(run.created for run in begun),
        first_id=f"r{min(ids)}",
        last_id=f"r{max(ids)}",
        runs=[f"r{id}" for id in ids] if len(ids) <= FEW else [],
    )


def _new_run(wish: Wish) -> NewRun:
    check_words(("key", wish.key), ("batch", wish.batch))
    return NewRun(args=checked_args(wish.args), key=wish.key, batch=wish.batch)


async def list_runs(engine: Engine, asker: Asker, request: ListRuns) -> RunPage:
    limit = max(1, min(request.limit, LONGEST_PAGE))

    def ask(connection: Connection) -> RunPage:
        found = run_pages.listed(
            connection, request.where, engine.clock.now(), limit=limit, after=request.after
        )
        told = list(that_fit(map(fitted, found.runs), ROOM))
        after = told[-1].id if len(told) < len(found.runs) else found.after
        return RunPage(runs=told, after=after, as_of=found.as_of)

    return await engine.store.read(ask)


async def show_run(engine: Engine, asker: Asker, request: ShowRun) -> RunReply:
    run = await engine.store.read(run_pages.get, run_number(request.id))
    if run is None:
        raise NotFound(f"there is no run {request.id}", hint="`redrive runs` lists them")
    return RunReply(run=fitted(run), next=_next(run), as_of=await engine.store.read(events.head))


async def list_batches(engine: Engine, asker: Asker, request: ListBatches) -> BatchPage:
    limit = max(1, min(request.limit, LONGEST_PAGE))
    rows = await engine.store.read(batch_pages.batch_rows, limit, request.after)
    after = rows[-1].name if len(rows) == limit else None
    return BatchPage(batches=rows, after=after, as_of=await engine.store.read(events.head))


def _next(run: Run) -> str:
    """What the operator can do now."""
    match run.state:
        case "failed" | "cancelled":
            broken = next((step for step in run.steps if step.state in ("dead", "cancelled")), None)
            if broken and broken.error and broken.error.category == "permanent":
                again = f"`redrive requeue {run.id} --force`"
                return f"mend the cause, then {again} resumes it at {broken.name}"
            where = f" at {broken.name}" if broken else ""
            return f"`redrive requeue {run.id}` resumes it{where}; `--from STEP` begins earlier"
        case "done":
            return f"nothing; `redrive requeue {run.id}` processes it once more, if confirmed"
        case "running":
            return f"`redrive cancel {run.id}` stops it"
