"""Every request there is, and the function that answers it; nothing else can be asked."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from redrive.protocol import commands, queries, rehearsals
from redrive.protocol.envelope import Reply, Request
from redrived.api import (
    acting,
    backup,
    doctor,
    enqueue,
    events,
    jobs,
    outbox,
    pausing,
    pipelines,
    previewing,
    redrives,
    reload,
    rules,
    runs,
    schedules,
    status,
    why,
)
from redrived.api.server import Asker, Handler
from redrived.engine.engine import Engine

# Each with the request of its own type.
Function = Callable[[Engine, Asker, Any], Awaitable[Reply]]

QUERIES: Mapping[type[Request], Function] = {
    queries.Status: status.status,
    queries.ListQueues: status.list_queues,
    queries.ListNodes: status.list_nodes,
    queries.ListJobs: jobs.list_jobs,
    queries.ListGroups: jobs.list_groups,
    queries.ShowJob: jobs.show_job,
    queries.Why: why.why,
    queries.ListEvents: events.list_events,
    queries.ReadLog: events.read_log,
    rehearsals.Classify: rules.classify,
    rehearsals.ShowPolicy: rules.show_policy,
    rehearsals.TestRules: rules.test_rules,
    rehearsals.Preview: previewing.preview,
    queries.Doctor: doctor.doctor,
    queries.ListRedrives: redrives.list_redrives,
    queries.ListOutbox: outbox.list_outbox,
    queries.ListRuns: runs.list_runs,
    queries.ListBatches: runs.list_batches,
    queries.ShowRun: runs.show_run,
    queries.ListPipelines: pipelines.list_pipelines,
    queries.ShowPipeline: pipelines.show,
    queries.ListSchedules: schedules.list_schedules,
}

COMMANDS: Mapping[type[Request], Function] = {
    commands.Enqueue: enqueue.enqueue_jobs,
    commands.Start: runs.start_runs,
    commands.AddPipeline: pipelines.add,
    commands.Trigger: schedules.trigger,
    commands.Act: acting.act,
    commands.DiscardOrder: outbox.discard_order,
    commands.Undo: redrives.undo,
    commands.ControlRedrive: redrives.control,
    commands.PauseIt: pausing.pause,
    commands.ResumeIt: pausing.resume,
    commands.Drain: pausing.drain,
    commands.Reload: reload.reload,
    commands.Backup: backup.backup,
}


def table(engine: Engine) -> dict[type[Request], Handler]:
    """The functions, each with the engine it works on."""
    return {kind: partial(function, engine) for kind, function in {**QUERIES, **COMMANDS}.items()}
