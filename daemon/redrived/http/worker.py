"""What the ingestion of archives asks of its worker: how a run fares, and all of them."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response

from redrive.deciding.standing import why_dead
from redrive.lifecycle import Reason
from redrive.models import Job, Run, StepState
from redrive.protocol.queries import ShowRun
from redrived.api import runs as api
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.http.bodies import answer
from redrived.http.replies import FailedRun, RetryStats, RunMetrics, RunStatus, Timestamps
from redrived.store import jobs, run_numbers


async def run_status(engine: Engine, asker: Asker, request: Request) -> Response:
    """Of the step that tells most: the one that failed, else runs, else was last."""
    id: str = request.path_params["id"]
    asked = ShowRun(id=f"r{id}" if id.isdecimal() else id)
    run = (await api.show_run(engine, asker, asked)).run
    step = _telling(run)
    job = None
    if step is not None and step.job is not None:
        job = await engine.store.read(jobs.get, step.job)
    error = (job and job.error) or (step and step.error) or None
    return answer(
        RunStatus(
            run_id=run.id,
            status=run.status,
            task_id=step.job if step else None,
            retry_count=max(0, step.attempts - 1) if step else 0,
            error_message=_message(job, error.message) if error else _why_dead(step),
            error_traceback=error.traceback if error else None,
            timestamps=_timestamps(run, job),
            metrics=(job.metrics if job and job.metrics else run.metrics) or {},
        )
    )


async def metrics(engine: Engine, asker: Asker, request: Request) -> Response:
    found = await engine.store.read(run_numbers.look)
    return answer(
        RunMetrics(
            status_counts=found.status_counts,
            retry_stats=RetryStats(
                total_retries=found.total_retries,
                runs_retried=found.runs_retried,
                most_retries=found.most_retries,
            ),
            avg_duration=found.avg_duration,
            recent_failures=[_failure(run) for run in found.recent_failures],
        )
    )


def _telling(run: Run) -> StepState | None:
    for step in run.steps:
        if step.state == "dead":
            return step  # also where it never came to a job
    begun = [step for step in run.steps if step.job is not None]
    for states in (("cancelled",), ("leased",), ("retry", "queued")):
        for step in begun:
            if step.state in states:
                return step
    return begun[-1] if begun else None


def _message(job: Job | None, said: str) -> str:
    if job is not None and job.reason == Reason.EXHAUSTED:
        return f"{why_dead(job.reason, job.max_attempts)}: {said}"
    return said


def _why_dead(step: StepState | None) -> str | None:
    """What is known of a failure without an error: of the run itself, or the job is discarded."""
    return step.why if step is not None and step.state == "dead" else None


def _timestamps(run: Run, job: Job | None) -> Timestamps:
    return Timestamps(
        created_at=run.created_at,
        started_at=job.started_at if job else None,
        last_heartbeat=job.heartbeat_at if job else None,
        last_attempt_at=job.last_attempt_at if job else None,
        completed_at=run.finished_at,
    )


def _failure(run: Run) -> FailedRun:
    step = _telling(run)
    error = step.error if step else None
    return FailedRun(
        run_id=run.id,
        status=run.status,
        step=step.name if step else None,
        error_type=error.error_type if error else None,
        error_message=error.message if error else _why_dead(step),
        finished_at=run.finished_at,
    )
