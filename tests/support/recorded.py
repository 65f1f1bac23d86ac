"""A daemon written down: the replies a console gets, from records a test chooses."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from redrive.errors import DaemonUnreachable, NotFound
from redrive.filters import matches, parse
from redrive.lifecycle import JobState
from redrive.models import Event, Job, Run
from redrive.protocol import commands, queries, rehearsals
from redrive.protocol.commands import Act, Acted, Done, Outcome
from redrive.protocol.envelope import Request
from redrive.protocol.rows import BatchRow, GroupRow, RedriveRow, RunPlan, ScheduleRow
from redrive_tui.mirror import Mirror

SORT_KEYS: dict[str, Callable[[Job], Any]] = {
    "id": lambda job: job.id,
    "next": lambda job: job.available_at or 0,
    "attempt": lambda job: job.attempts,
    "priority": lambda job: job.priority,
}


class Gate:
    """Where the questions of one kind are kept waiting, as by a daemon that takes its time."""

    def __init__(self) -> None:
        self.reached = asyncio.Event()
        self.opened = asyncio.Event()

    async def pass_through(self) -> None:
        self.reached.set()
        await self.opened.wait()


class Recorded:
    """Answers from its own lists; a command only moves states, and is remembered."""

    address = "ipc:///run/redrive"

    def __init__(self, status: queries.StatusReply, welcome: queries.Welcome) -> None:
        self.status = status
        self.welcome = welcome
        self.jobs: list[Job] = []
        self.at_once = 10_000  # of them a message holds, however many are asked for
        self.details: dict[int, queries.JobReply] = {}
        self.groups: list[GroupRow] = []
        self.groups_by: dict[str, list[GroupRow]] = {}
        self.redrives: list[RedriveRow] = []
        self.runs: list[Run] = []
        self.older_runs = False  # than those on the page
        self.batches: list[BatchRow] = []
        self.schedules: list[ScheduleRow] = []
        self.events: list[Event] = []
        self.log = b""
        self.executions = 1  # of the job whose output it is
        self.log_warning: str | None = None
        self.asked: list[Request] = []
        self.commanded: list[Request] = []
        self.keys: list[str] = []
        self.lost = False  # answers nothing more
        self.fault: Exception | None = None  # raised by the next command
        self.outcomes: dict[str, Outcome] = {}  # of those that are not done
        self.gates: dict[type[Request], Gate] = {}
        self.changes = True  # whether a pause, say, is news to the daemon

    async def follow(self, mirror: Mirror) -> None:
        mirror.meet(self.welcome)
        mirror.load(self.status)
        mirror.apply(self.events)

    async def ask(self, query: Request) -> Any:
        if self.lost:
            raise DaemonUnreachable("no answer", hint="start it with `redrived`")
        self.asked.append(query)
        if (gate := self.gates.get(type(query))) is not None:
            await gate.pass_through()
        return getattr(self, f"_{type(query).__name__.lower()}")(query)

    async def command(self, command: Request, *, key: str) -> Any:
        if self.lost:
            raise DaemonUnreachable("no answer", hint="start it with `redrived`")
        if self.fault is not None:
            fault, self.fault = self.fault, None
            raise fault
        self.commanded.append(command)
        self.keys.append(key)
        if isinstance(command, Act):
            return self._act(command)
        return Done(text="", data={"changed": self.changes})

    # Lists.

    def _listjobs(self, query: queries.ListJobs) -> queries.JobPage:
        found = self._matching(query.where, query.sort or "-id")
        start = (query.offset or 0) if query.after is None else int(query.after)
        end = min(start + min(query.limit, self.at_once), len(found))
        after = str(end) if end < len(found) else None
        return queries.JobPage(
            jobs=found[start:end], after=after, as_of=self.status.seq, total=len(found)
        )

    def _matching(self, where: str, sort: str = "-id") -> list[Job]:
        filter = parse(where)
        found = [job for job in self.jobs if matches(filter, job, self.status.at)]
        key = SORT_KEYS.get(sort.lstrip("-"), SORT_KEYS["id"])
        return sorted(found, key=key, reverse=sort.startswith("-"))

    def _listgroups(self, query: queries.ListGroups) -> queries.GroupPage:
        groups = self.groups if query.by == "error" else self.groups_by.get(query.by, [])
        return queries.GroupPage(groups=groups, as_of=self.status.seq)

    def _listredrives(self, query: queries.ListRedrives) -> queries.RedrivePage:
        return queries.RedrivePage(redrives=self.redrives)

    def _listruns(self, query: queries.ListRuns) -> queries.RunPage:
        runs = [run for run in self.runs if query.where in ("", f"batch:{run.batch}")]
        after = runs[-1].id if self.older_runs else None
        return queries.RunPage(runs=runs, after=after, as_of=self.status.seq)

    def _listbatches(self, query: queries.ListBatches) -> queries.BatchPage:
        return queries.BatchPage(batches=self.batches, as_of=self.status.seq)

    def _listschedules(self, query: queries.ListSchedules) -> queries.SchedulePage:
        return queries.SchedulePage(schedules=self.schedules, as_of=self.status.seq)

    # One thing.

    def _showjob(self, query: queries.ShowJob) -> queries.JobReply:
        if query.id in self.details:
            return self.details[query.id]
        for job in self.jobs:
            if job.id == query.id:
                return queries.JobReply(job=job, history=[])
        raise NotFound(f"there is no job {query.id}", hint="`redrive jobs` lists them")

    def _listevents(self, query: queries.ListEvents) -> queries.EventPage:
        events = [event for event in self.events if query.id in (None, str(event.job))]
        return queries.EventPage(events=events, head=self.status.seq)

    def _readlog(self, query: queries.ReadLog) -> queries.LogReply:
        start = max(0, len(self.log) - query.limit) if query.tail else query.offset
        data = self.log[start : start + query.limit]
        return queries.LogReply(
            data=data,
            offset=start + len(data),
            size=len(self.log),
            finished=True,
            attempt=self.executions,
            execution=self.executions,
            warning=self.log_warning,
        )

    def _why(self, query: queries.Why) -> queries.WhyReply:
        text = "waits for its next attempt"
        return queries.WhyReply(
            id=query.id, state="retry", code="retry", text=text, saw={"attempt": 3}
        )

    def _preview(self, query: rehearsals.Preview) -> rehearsals.PreviewReply:
        found = self._matching(query.where) if query.where is not None else []
        found += [job for job in self.jobs if job.id in query.ids]
        states = [job.state.value for job in found]
        hopeless = [job for job in found if job.reason == "permanent" and not query.force]
        fits = len(found) - len(hopeless)
        return rehearsals.PreviewReply(
            total=len(found),
            by_state={state: states.count(state) for state in dict.fromkeys(states)},
            fits=fits,
            excluded={"the failure is permanent": len(hopeless)} if hopeless else {},
            sample=found[:5],
            as_of=self.status.seq,
            newest=max((job.id for job in found), default=0),
            runs=[self._plan(run, query) for run in self.runs if run.id in query.runs],
        )

    def _plan(self, run: Run, query: rehearsals.Preview) -> RunPlan:
        if run.state == "done" and not query.again:
            return RunPlan(id=run.id, refused="it has results; all of it would be made again")
        names = [step.name for step in run.steps if step.state != "done" or run.state == "done"]
        return RunPlan(id=run.id, steps=names)

    def _fate(self, query: queries.Fate) -> queries.FateReply:
        return queries.FateReply(known=query.request in self.keys)

    # Commands.

    def _act(self, act: commands.Act) -> Acted:
        after = {"requeue": JobState.QUEUED, "cancel": JobState.CANCELLED}.get(act.verb)
        meant = self._matching(act.where) if act.where is not None else []
        ids = [*act.ids, *(str(job.id) for job in meant)]
        if after is not None:
            self.jobs = [
                replace(job, state=after) if str(job.id) in ids else job for job in self.jobs
            ]
        outcomes = [self.outcomes.get(id, Outcome(id=id, done=True)) for id in ids]
        return Acted(outcomes=outcomes, total=len(ids))
