"""Pipelines: registering a playbook, looking at what there is."""

from __future__ import annotations

import msgspec

from redrive.pipelines import draw
from redrive.protocol.commands import AddPipeline, Done
from redrive.protocol.queries import ListPipelines, PipelinePage, PipelineReply, ShowPipeline
from redrived.api.server import Asker
from redrived.engine.engine import Engine


async def add(engine: Engine, asker: Asker, request: AddPipeline) -> Done:
    entry = await engine.pipelines.add(request, asker.who)
    return Done(
        text=f"pipeline {entry.name} is registered in version {entry.version}",
        data={"name": entry.name, "version": entry.version},
    )


async def list_pipelines(engine: Engine, asker: Asker, request: ListPipelines) -> PipelinePage:
    return PipelinePage(pipelines=engine.pipelines.rows())


async def show(engine: Engine, asker: Asker, request: ShowPipeline) -> PipelineReply:
    entry = await engine.pipelines.find(request.name, request.version)
    return PipelineReply(
        name=entry.name,
        version=entry.version,
        definition=msgspec.to_builtins(entry.definition),
        source=entry.source,
        graph=draw(entry.definition),
    )
