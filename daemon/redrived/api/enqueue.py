"""New work."""

from __future__ import annotations

from redrive.protocol.commands import Enqueue, Enqueued, EnqueuedJob
from redrived.api.server import Asker
from redrived.engine import intake
from redrived.engine.engine import Engine
from redrived.store.enqueue import enqueue

FEW = 100  # jobs that are answered for one by one


async def enqueue_jobs(engine: Engine, asker: Asker, request: Enqueue) -> Enqueued:
    order = intake.order(engine.definitions, request, asker.who, engine.store.now())
    placed = await engine.store.submit(enqueue, order)
    return Enqueued(
        count=len(placed),
        created=sum(place.created for place in placed),
        first_id=min((place.id for place in placed), default=0),
        last_id=max((place.id for place in placed), default=0),
        jobs=[
            EnqueuedJob(id=place.id, state=place.state, created=place.created) for place in placed
        ]
        if len(placed) <= FEW
        else [],
    )
