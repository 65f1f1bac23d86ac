"""What applications, commands and the console ask of the daemon, as methods.

Each is one request and its reply, or a small conversation made of them; what can be asked
at all is the business of `redrive.protocol`, how it travels that of `Channel`.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator, Iterable, Mapping
from datetime import datetime
from math import inf
from typing import Any, Self, get_args

from redrive.client import bulk, waiting
from redrive.client.addresses import Addresses, addresses_of
from redrive.client.channel import Channel, request_id
from redrive.client.follower import Follower, Told
from redrive.client.refusals import AnswerLost
from redrive.client.waiting import Id
from redrive.config import Config
from redrive.errors import UsageProblem
from redrive.instants import Instant
from redrive.models import Job, Run
from redrive.orders import Options, order_of
from redrive.protocol import commands, queries
from redrive.protocol.commands import EnqueuedJob, JobOrder, RunOrder
from redrive.protocol.envelope import MAX_MESSAGE, MAX_QUERY, Request
from redrive.protocol.queries import Welcome
from redrive.protocol.rows import OutboxRow

TIMEOUT = 10.0  # seconds

_CHANGES = frozenset(get_args(commands.Command)) - {queries.Hello}


class AsyncClient:
    """The daemon, from asyncio. Opens its sockets when first used, in the loop that uses it."""

    def __init__(
        self,
        config: Addresses | Config | str | os.PathLike[str] | None = None,
        *,
        timeout: float = TIMEOUT,
        name: str = "redrive",
    ) -> None:
        if not 0 < timeout < inf:
            raise UsageProblem(
                f"a timeout of {timeout} s is none", hint="seconds, more than 0 and not without end"
            )
        self.addresses = addresses_of(config)
        self.timeout = timeout
        self._queries = Channel(self.addresses.query, self.addresses, name=name, largest=MAX_QUERY)
        self._changes = Channel(
            self.addresses.control, self.addresses, name=name, largest=MAX_MESSAGE
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        await self._queries.close()
        await self._changes.close()

    async def hello(self, *, as_operator: bool = False) -> Welcome:
        """Who answers and whom it takes us for, asked anew."""
        deadline = asyncio.get_running_loop().time() + self.timeout
        channel = self._changes if as_operator else self._queries
        return await channel.greet(deadline, again=True)

    async def hung_up(self) -> None:
        """Until the connection for questions ends; at once when there is none."""
        await self._queries.hung_up()

    async def ask(
        self, request: Request, *, id: str | None = None, timeout: float | None = None
    ) -> Any:
        """The reply that stands beside the request in `redrive.protocol`.

        A refusal is raised as the error it is; `AnswerLost` means that nobody knows whether
        a change was made, and `fate` may tell.
        """
        seconds = self.timeout if timeout is None else timeout
        return await self._put(request, id or request_id(), seconds)

    async def _put(self, request: Request, id: str, seconds: float) -> Any:
        if self.is_change(request):
            return await self._over(self._changes, request, id, seconds)
        try:
            return await self._question(request, id, seconds)
        except AnswerLost as lost:
            raise lost.of_a_question(self.addresses.hint) from None

    async def _over(self, channel: Channel, request: Request, id: str, seconds: float) -> Any:
        return await channel.ask(request, id=id, timeout=seconds)

    @staticmethod
    def is_change(request: Request) -> bool:
        return type(request) in _CHANGES

    async def _question(self, request: Request, id: str, seconds: float) -> Any:
        """Asked twice where the daemon goes away meanwhile: it may be back, and nothing is done."""
        try:
            return await self._over(self._queries, request, id, seconds)
        except AnswerLost as lost:
            if lost.is_silent:
                raise
        return await self._over(self._queries, request, id, seconds)

    async def fate(self, request: str) -> queries.FateReply:
        """What became of the request with this id."""
        reply: queries.FateReply = await self.ask(queries.Fate(request=request))
        return reply

    # ---- new work ------------------------------------------------------------------------

    async def enqueue(
        self,
        task: str,
        args: Mapping[str, Any] | None = None,
        *,
        queue: str | None = None,
        operation: str | None = None,
        mode: str | None = None,
        priority: int | None = None,
        delay: float | None = None,
        at: datetime | Instant | None = None,
        unique: str | None = None,
        hold: bool = False,
    ) -> EnqueuedJob:
        """One job, not before `at` (with a time zone) or `delay` seconds from now.

        `created` is false when a live job has its unique key; it is that one's id then.
        """
        options = Options(
            queue=queue,
            operation=operation,
            mode=mode,
            priority=priority,
            delay=delay,
            at=at,
            unique=unique,
            hold=hold,
        )
        order = order_of(args, options)
        reply: commands.Enqueued = await self.ask(commands.Enqueue(task=task, orders=[order]))
        return reply.jobs[0]

    async def enqueue_many(self, task: str, orders: Iterable[JobOrder]) -> commands.Enqueued:
        """Any number of jobs, sent as they come; each group of them entirely or not at all."""
        return await bulk.enqueue(self, task, orders)

    async def order(self, ticket: str) -> OutboxRow:
        """What became of a job that was enqueued inside a transaction, once that is committed."""
        reply: queries.OutboxPage = await self.ask(queries.ListOutbox(ticket=ticket))
        return reply.orders[0]

    async def start(
        self,
        pipeline: str,
        args: Mapping[str, Any] | None = None,
        *,
        key: str | None = None,
        batch: str | None = None,
        mode: str | None = None,
    ) -> commands.Started:
        """One run of a pipeline."""
        order = RunOrder(args=dict(args or {}), key=key, batch=batch)
        reply: commands.Started = await self.ask(
            commands.Start(pipeline=pipeline, orders=[order], mode=mode)
        )
        return reply

    async def start_many(
        self, pipeline: str, orders: Iterable[RunOrder], *, mode: str | None = None
    ) -> commands.Started:
        """Any number of runs, as `enqueue_many` does it."""
        return await bulk.start(self, pipeline, orders, mode)

    async def act(self, verb: str, /, *ids: int | str, **options: Any) -> commands.Acted:
        """A verb on ids, or on all that match `where=`; the options are those of `Act`."""
        names = [str(id) for id in ids]
        reply: commands.Acted = await self.ask(commands.Act(verb=verb, ids=names, **options))
        return reply

    async def wait(self, *ids: Id, timeout: float | None = None) -> dict[Id, str]:
        """The states in which jobs and runs ended; without those still going at the timeout."""
        return await waiting.wait(self, ids, timeout)

    # ---- what there is -------------------------------------------------------------------

    async def status(self) -> queries.StatusReply:
        reply: queries.StatusReply = await self.ask(queries.Status())
        return reply

    async def jobs(
        self,
        where: str = "",
        *,
        sort: str | None = None,
        limit: int = 50,
        after: str | None = None,
    ) -> queries.JobPage:
        request = queries.ListJobs(where=where, sort=sort, limit=limit, after=after)
        reply: queries.JobPage = await self.ask(request)
        return reply

    async def job(self, id: int) -> Job:
        return (await self.show_job(id)).job

    async def show_job(self, id: int) -> queries.JobReply:
        reply: queries.JobReply = await self.ask(queries.ShowJob(id=id))
        return reply

    async def runs(
        self, where: str = "", *, limit: int = 50, after: str | None = None
    ) -> queries.RunPage:
        reply: queries.RunPage = await self.ask(
            queries.ListRuns(where=where, limit=limit, after=after)
        )
        return reply

    async def run(self, id: str) -> Run:
        return (await self.show_run(id)).run

    async def show_run(self, id: str) -> queries.RunReply:
        reply: queries.RunReply = await self.ask(queries.ShowRun(id=id))
        return reply

    async def why(self, id: int | str) -> queries.WhyReply:
        reply: queries.WhyReply = await self.ask(queries.Why(id=str(id)))
        return reply

    async def events(
        self,
        id: int | str | None = None,
        *,
        after: int = 0,
        limit: int = 1000,
        last: int | None = None,
    ) -> queries.EventPage:
        """A page of the log, oldest first; of one job or run when `id` is given."""
        name = None if id is None else str(id)
        request = queries.ListEvents(id=name, after=after, limit=limit, last=last)
        reply: queries.EventPage = await self.ask(request)
        return reply

    async def log(
        self, id: int, *, attempt: int | None = None, offset: int = 0
    ) -> queries.LogReply:
        """What an attempt wrote, from `offset` on."""
        request = queries.ReadLog(id=id, attempt=attempt, offset=offset)
        reply: queries.LogReply = await self.ask(request)
        return reply

    def follow(self, after: int | None = None, *, vitals: bool = False) -> AsyncGenerator[Told]:
        """Every event after a seq, or from now on, for ever and without a hole.

        The first word is a `Resync`, and so is the first after the daemon was restarted;
        `Away` says that nobody answers for the moment.
        """
        follower = Follower(
            self, self.addresses.events, self.addresses.keys, after=after, vitals=vitals
        )
        return follower.follow()
