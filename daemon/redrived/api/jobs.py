"""Looking at jobs: pages, groups of errors, one job with its past and its plan."""

from __future__ import annotations

from redrive import filters
from redrive.clock import SECOND
from redrive.deciding.because import spell
from redrive.errors import NotFound, UsageProblem
from redrive.history import history
from redrive.instants import Instant
from redrive.lifecycle import JobState
from redrive.models import Attempt, Job
from redrive.policy import RetryPolicy, timeline
from redrive.protocol.codec import encode_told, that_fit
from redrive.protocol.envelope import ROOM
from redrive.protocol.queries import GroupPage, JobPage, JobReply, ListGroups, ListJobs, ShowJob
from redrive.protocol.rows import Plan, Usage
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.processes import proc
from redrived.processes.resources import PAGE, living
from redrived.store import events, groups, jobs
from redrived.store.filtering import where
from redrived.store.listing import listed
from redrived.store.store import Condition, Connection

MOST_ON_A_PAGE = 10_000
MOST_EXECUTIONS = 1_000  # of one job; `redrive events ID` tells of all


def condition(engine: Engine, text: str) -> Condition | None:
    """A filter as SQL."""
    parsed = filters.parse(text)
    found = where(parsed, engine.clock.now(), is_sqlite=engine.store.database.is_sqlite)
    return found if parsed.terms else None


def order(filter: filters.Filter) -> str:
    """The order a filter asks for, else the newest first."""
    if not filter.sort:
        return "-id"
    first = filter.sort[0]
    return f"-{first.key}" if first.descending else first.key


async def list_jobs(engine: Engine, asker: Asker, request: ListJobs) -> JobPage:
    if not 1 <= request.limit <= MOST_ON_A_PAGE:
        raise UsageProblem(
            f"a page of {request.limit} jobs is not possible", hint=f"1 to {MOST_ON_A_PAGE}"
        )
    filter = filters.parse(request.where)
    now, definitions = engine.clock.now(), engine.definitions

    def ask(connection: Connection) -> JobPage:
        page, total, exact = listed(
            connection,
            filter,
            now,
            sort=request.sort or order(filter),
            limit=request.limit,
            after=request.after,
            offset=max(0, request.offset or 0),
            count=request.count,
        )
        shown = [definitions.budgeted(job) for job in page.jobs]
        return JobPage(jobs=shown, after=page.after, as_of=page.as_of, total=total, exact=exact)

    return await engine.store.read(ask)


async def list_groups(engine: Engine, asker: Asker, request: ListGroups) -> GroupPage:
    clause = condition(engine, request.where)
    now = engine.clock.now()

    def ask(connection: Connection) -> GroupPage:
        rows = groups.groups(connection, clause, now, max(1, request.limit), request.by)
        return GroupPage(groups=rows, as_of=events.head(connection))

    return await engine.store.read(ask)


async def show_job(engine: Engine, asker: Asker, request: ShowJob) -> JobReply:
    def ask(connection: Connection) -> tuple[Job | None, str | None, list[Attempt], int]:
        job = jobs.get(connection, request.id)
        pinned = jobs.pinned(connection, request.id)
        past = _past(connection, job) if job else []
        return job, pinned, past, events.head(connection)

    job, pinned, past, head = await engine.store.read(ask)
    if job is None:
        raise NotFound(f"there is no job {request.id}", hint="`redrive jobs` lists them")
    definition = engine.definitions.tasks.get(job.task)
    policy = definition.policy if definition else RetryPolicy(max_attempts=job.max_attempts)
    policy = engine.definitions.step_policy(pinned, job.step) or policy
    return JobReply(
        job=engine.definitions.budgeted(job),
        history=past,
        plan=plan(job, policy, engine.clock.now()),
        policy=describe(policy),
        next=next_step(job),
        usage=_usage(engine, job.id),
        as_of=head,
    )


def _usage(engine: Engine, id: int) -> Usage | None:
    """What it uses that runs here; of the processor on average, since its process began."""
    attempt = engine.attempts.get(id)
    members = living(attempt.executor.pids()) if attempt else []
    if not members:
        return None
    age = max(1, proc.ticks() - members[0].started)
    return Usage(
        pids=[facts.pid for facts in members],
        cpu=100 * sum(facts.cpu for facts in members) / age,
        memory=sum(facts.rss for facts in members) * PAGE,
        at=engine.clock.now(),
    )


def _past(connection: Connection, job: Job) -> list[Attempt]:
    """The last executions, as many as a reply has room for beside the job itself."""
    past = history(*events.last_executions(connection, job.id, MOST_EXECUTIONS))
    room = ROOM - len(encode_told(job))
    return list(that_fit(reversed(past), room))[::-1]


def plan(job: Job, policy: RetryPolicy, now: Instant) -> list[Plan]:
    """The attempts that are still to come, should every one of them fail."""
    if job.state not in (JobState.QUEUED, JobState.RETRY, JobState.LEASED):
        return []
    planned = timeline(policy)
    at = job.available_at or job.created_at
    if job.state is JobState.LEASED:
        at = now  # the earliest moment at which this attempt can fail
    plans: list[Plan] = []
    for each in planned[job.attempts :]:
        if job.state is JobState.LEASED or plans:
            at += round(each.delay * SECOND)
        plans.append(
            Plan(
                attempt=each.attempt,
                at=at,
                approximate=policy.jitter > 0 and (bool(plans) or job.state is JobState.LEASED),
                last=each.attempt == job.max_attempts,
            )
        )
    return plans


def describe(policy: RetryPolicy) -> str:
    """A policy in a line: `3 attempts, 5 s × 2 up to 10 min, jitter ±10%`."""
    if policy.max_attempts == 1:
        return "1 attempt, no retry"
    if policy.delays:
        waits = ", ".join(map(spell, policy.delays))
    else:
        backoff = policy.backoff
        waits = f"{spell(backoff.first)} × {backoff.factor:g} up to {spell(backoff.cap)}"
    jitter = f", jitter ±{policy.jitter:.0%}" if policy.jitter else ""
    return f"{policy.max_attempts} attempts, {waits}{jitter}"


def next_step(job: Job) -> str:
    """What the operator can do now, in one sentence."""
    id = job.id
    match job.state:
        case JobState.DEAD if job.reason == "permanent":
            return f"mend the cause, then `redrive requeue {id} --force`"
        case JobState.DEAD:
            return f"`redrive requeue {id}` gives it another life, `redrive discard {id}` drops it"
        case JobState.CANCELLED:
            return f"`redrive requeue {id}` gives it another life"
        case JobState.LEASED:
            return f"`redrive logs {id} -f` shows its output, `redrive cancel {id}` ends it"
        case JobState.RETRY if not job.held:
            return f"`redrive run-now {id}` drops the wait, `redrive why {id}` says what it is for"
        case JobState.QUEUED | JobState.RETRY if job.held:
            return f"`redrive release {id}` lets it go"
        case JobState.QUEUED:
            return f"`redrive why {id}` says what it waits for"
        case _:
            return "nothing is left to do"
