"""What the daemon finds when it looks at itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from redrive.clock import SECOND
from redrive.config import changes, load
from redrive.errors import RedriveError
from redrive.protocol.queries import Doctor, DoctorReply
from redrive.protocol.rows import Check
from redrive.room import room_check
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.processes.stuck import stuck_hint, stuck_words
from redrived.store import outbox, soundness
from redrived.store.database import Trouble
from redrived.store.soundness import Soundness

DRIFT = 5.0  # seconds that two clocks may differ
LONG_LOG = 256 * 1024 * 1024  # bytes of SQLite's log that somebody keeps from being taken in


async def doctor(engine: Engine, asker: Asker, request: Doctor) -> DoctorReply:
    return DoctorReply(
        checks=[
            *await _what_the_store_says(engine),
            *_pools(engine),
            *_commands(engine),
            Check(name="reach", ok=True, text=engine.trees.reach),
            *_unkillable(engine),
            *_output(engine),
            *await asyncio.to_thread(_disk, engine),
            *_breakers(engine),
            await asyncio.to_thread(_config, engine),
        ]
    )


async def _what_the_store_says(engine: Engine) -> list[Check]:
    now = engine.clock.now()
    try:
        found = await engine.store.read(soundness.look, engine.store.database, now)
        return [
            *_store(engine, found, now),
            *await _nodes(engine),
            *await _outbox(engine),
        ]
    except RedriveError as problem:
        return [Check(name="store", ok=False, text=problem.message, hint=_once_back(engine))]


def _once_back(engine: Engine) -> str:
    if engine.store.writer.trouble is Trouble.MISSING:
        return (
            "it goes on by itself once that very file is back; where it was deleted, stop the daemon"
            " and put a backup there with `redrive restore FILE`, or begin with an empty store"
        )
    return "it goes on by itself once the disk or the database is back"


def _store(engine: Engine, found: Soundness, now: int) -> Iterator[Check]:
    trouble = engine.store.writer.trouble_in_words
    database = "SQLite" if engine.store.database.is_sqlite else "PostgreSQL"
    yield Check(
        name="store",
        ok=found.problem is None and trouble is None,
        text=found.problem or trouble or f"{database} {found.version} is sound",
        hint="a damaged store is put back with `redrive restore FILE`"
        if found.problem
        else _once_back(engine),
    )
    drift = (now - found.now) / SECOND
    yield Check(
        name="store clock",
        ok=abs(drift) < DRIFT,
        text=f"this machine's clock and the database's differ by {abs(drift):.1f} s",
        hint="let both be kept by NTP",
    )
    ahead = (found.newest - found.now) / SECOND
    yield Check(
        name="clock",
        ok=ahead < DRIFT,
        text=f"the newest event is {ahead:.0f} s in the future"
        if ahead >= DRIFT
        else "no event is from the future",
        hint="the clock was set back; what is due waits for that time to pass again",
    )
    if engine.store.database.is_sqlite:
        log = Path(f"{engine.store.database.path}-wal")
        size = log.stat().st_size if log.exists() else 0
        yield Check(
            name="store log",
            ok=size < LONG_LOG,
            text=f"the write-ahead log has {size / 1e6:.1f} MB",
            hint="some program holds the store open and reads: end it",
        )


def _pools(engine: Engine) -> Iterator[Check]:
    for pool in engine.python.pools.values():
        yield Check(
            name=f"pool {pool.name}",
            ok=not pool.trouble,
            text=pool.trouble or f"{len(pool.workers)} workers, {pool.busy} busy",
            hint=f"[pools.{pool.name}] {pool.advice}",
        )
        if pool.preload_failed:
            yield Check(
                name=f"preload {pool.name}",
                ok=False,
                text=pool.preload_failed,
                hint=f"mend the module or [pools.{pool.name}] preload; other tasks run",
            )


def _commands(engine: Engine) -> Iterator[Check]:
    if (trouble := engine.commands.trouble) is not None:
        yield Check(name="commands", ok=False, text=trouble.message, hint=trouble.hint)


def _unkillable(engine: Engine) -> Iterator[Check]:
    for attempt in engine.attempts:
        if attempt.unkillable:
            yield _stuck(f"job {attempt.job.id}", attempt.unkillable)
    if strangers := engine.leftovers.strangers:
        yield _stuck("leftovers", strangers)


def _stuck(name: str, pids: Sequence[int]) -> Check:
    return Check(name=name, ok=False, text=stuck_words(pids), hint=stuck_hint(pids))


def _output(engine: Engine) -> Iterator[Check]:
    if engine.outputs.look():
        yield Check(
            name="output",
            ok=False,
            text=engine.outputs.complaint,
            hint="let the daemon write there again; nobody is taken for silent meanwhile",
        )


def _disk(engine: Engine) -> list[Check]:
    room = engine.disk.room
    return [] if room is None else [room_check(room.path, room.free, room.total)]


def _breakers(engine: Engine) -> Iterator[Check]:
    for breaker in engine.breakers.all():
        yield Check(
            name=f"breaker {breaker.task}",
            ok=False,
            text=f"open: {breaker.why}",
            hint=f"what task {breaker.task} depends on is down; a probe closes it",
        )


async def _nodes(engine: Engine) -> list[Check]:
    return [
        Check(
            name=f"node {row.name}",
            ok=False,
            text=f"is {row.state}",
            hint="its jobs go to the others once it is lost; look at its machine",
        )
        for row in await engine.nodes()
        if row.state in ("late", "lost")
    ]


async def _outbox(engine: Engine) -> list[Check]:
    refused = await engine.store.read(outbox.refused)
    text = f"refused orders in the outbox: {refused}"
    hint = "`redrive outbox` says why; they are tried again after a reload"
    return [Check(name="outbox", ok=False, text=text, hint=hint)] if refused else []


def _config(engine: Engine) -> Check:
    running = engine.definitions.config
    try:
        on_disk = load(running.path or os.devnull).config
    except RedriveError as problem:
        return Check(
            name="config on disk",
            ok=False,
            text=problem.message.splitlines()[0],
            hint="the daemon goes on with the one it has; mend the file before a restart",
        )
    plan = changes(running, on_disk)
    keys = (*plan.added, *plan.changed, *plan.removed)
    return Check(
        name="config on disk",
        ok=not plan,
        text=f"differs from the one in use: {', '.join(keys[:5])}" if plan else "is the one in use",
        hint="`redrive reload --dry-run` shows what a reload would change",
    )
