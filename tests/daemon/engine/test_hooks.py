from __future__ import annotations

import asyncio
import errno
import json
import os
import socket
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from redrive.config.spoken import OF_A_HOOK
from redrive.models import Event
from redrived.engine.engine import Engine
from redrived.engine.hooks import Occasion
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.say import Said, say
from support.clock import FakeClock
from support.engines import an_engine, told

CONFIG = """
[[hooks]]
on = ["dead", "stalled", "breaker_opened"]
command = ["sh", "-c", "cat > seen.json; echo $REDRIVE_FACTS > path"]
every = "5m"
timeout = "10s"
[[hooks]]
on = ["poison", "execution_failed"]
command = ["false"]
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with an_engine(tmp_path, CONFIG) as made:
        yield made


def an_event(kind: str, job: int | None = 1, **data: Any) -> Event:
    return Event(seq=1, at=1, type=kind, job=job, data=data)


def a_death(job: int, fingerprint: str, reason: str = "exhausted") -> list[Event]:
    return [
        an_event("action_error", job, error={"fingerprint": fingerprint}),
        an_event("step_retry_exhausted", job, reason=reason),
    ]


def occasions(engine: Engine, *events: Event) -> list[Occasion]:
    return list(engine.hooks.occasions(events))


def clock_of(engine: Engine) -> FakeClock:
    assert isinstance(engine.clock, FakeClock)
    return engine.clock


async def test_a_hook_is_told_once_per_error_group_in_its_time(engine: Engine) -> None:
    first = occasions(engine, *a_death(1, "aa"), *a_death(2, "aa"), *a_death(3, "bb"))
    assert [each.event.job for each in first] == [1, 3]
    clock_of(engine).move(301)
    (again,) = occasions(engine, *a_death(4, "aa"))
    assert (again.event.job, again.missed) == (4, 1)


async def test_of_groups_that_never_come_again_nothing_is_kept(engine: Engine) -> None:
    for n in range(10_001):
        occasions(engine, *a_death(1, f"g{n}"), *a_death(2, f"g{n}"))
    clock_of(engine).move(600)
    occasions(engine, *a_death(1, "last"))
    assert len(engine.hooks._told) == 1
    assert len(engine.hooks._missed) == 0


async def test_words_stand_for_types_of_event(engine: Engine) -> None:
    stalled = an_event("action_stalled", task="work")
    assert [each.on for each in occasions(engine, stalled)] == ["stalled"]
    assert [each.on for each in occasions(engine, *a_death(1, "aa", "poison"))] == [
        "dead",
        "poison",
    ]
    assert occasions(engine, an_event("action_started")) == []


async def test_a_run_that_was_cancelled_has_not_failed(engine: Engine) -> None:
    ends = [
        Event(seq=1, at=1, type="execution_failed", run="r1", state=state)
        for state in ("cancelled", "failed")
    ]
    assert [each.event.state for each in occasions(engine, *ends)] == ["failed"]


async def test_what_is_no_jobs_is_grouped_by_what_it_is_about(engine: Engine) -> None:
    events = [an_event("breaker_opened", None, task=name) for name in ("a", "b", "a")]
    assert [each.event.data["task"] for each in occasions(engine, *events)] == ["a", "b"]


async def test_a_reload_replaces_the_hooks(engine: Engine) -> None:
    assert engine.definitions.config.path is not None
    await asyncio.to_thread(
        Path(engine.definitions.config.path).write_text,
        "[[hooks]]\non = ['node_lost']\ncommand = ['true']",
    )
    await engine.reloader.reload(dry_run=False, by="me")
    assert occasions(engine, *a_death(1, "aa")) == []
    assert len(occasions(engine, an_event("node_lost", None, node="x"))) == 1


async def test_who_was_told_is_not_told_again_because_something_else_was_reloaded(
    engine: Engine,
) -> None:
    assert len(occasions(engine, *a_death(1, "aa"))) == 1
    engine.use(engine.definitions.config)  # as after `redrive pipeline add`, too
    assert occasions(engine, *a_death(2, "aa")) == []


async def test_a_command_gets_the_facts_on_its_input(engine: Engine, tmp_path: Path) -> None:
    await engine.store.submit(enqueue, Order(jobs=[NewJob(task="work", queue="default")]))
    (occasion,) = occasions(engine, *a_death(1, "aa"))
    await engine.hooks.tell(occasion)
    facts = json.loads((tmp_path / "seen.json").read_bytes())
    assert sorted(facts) == sorted(OF_A_HOOK)
    assert (facts["on"], facts["event"]["type"]) == ("dead", "step_retry_exhausted")
    assert (facts["job"]["id"], facts["job"]["task"], facts["missed"]) == (1, "work", 0)
    assert list((tmp_path / "hooks").iterdir()) == []
    assert await told(engine, "hook_failed") == []


async def failed_with(engine: Engine, command: str, timeout: str = "10s") -> str:
    assert engine.definitions.config.path is not None
    config = f'[[hooks]]\non = ["dead"]\ncommand = {command}\ntimeout = "{timeout}"'
    await asyncio.to_thread(Path(engine.definitions.config.path).write_text, config)
    await engine.reloader.reload(dry_run=False, by="me")
    (occasion,) = occasions(engine, *a_death(1, "aa"))
    await engine.hooks.tell(occasion)
    (event,) = await told(engine, "hook_failed")
    return str(event.data["problem"])


@pytest.mark.parametrize(
    ("command", "problem"),
    [
        ('["sh", "-c", "echo why >&2; exit 3"]', "exit code 3: why"),
        ('["sh", "-c", "kill -9 $$"]', "ended by SIGKILL"),
        ('["sh", "-c", "kill -40 $$"]', "ended by SIG40"),
        ('["/nowhere/prog"]', "exit code 127: "),
        (
            '["sh", "-c", "echo no way to db://me:pw@x >&2; exit 1"]',
            "exit code 1: no way to db://me:[r",
        ),
    ],
)
async def test_a_hook_that_fails_is_an_event(engine: Engine, command: str, problem: str) -> None:
    assert (await failed_with(engine, command)).startswith(problem)


async def test_a_hook_that_nobody_could_see_exit_is_ended_at_once(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def no_descriptor(pid: int) -> int:
        started.append(pid)
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(os, "pidfd_open", no_descriptor)
    assert "Too many open files" in await failed_with(engine, '["sleep", "300"]')
    [pid] = started
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_hook_that_hangs_is_ended_with_all_it_started(engine: Engine) -> None:
    problem = await failed_with(engine, '["sh", "-c", "sleep 60 & sleep 60"]', "100ms")
    assert problem == "it was still running after 0.1 s, and was ended"


async def test_a_hook_on_failing_hooks_does_not_feed_itself(engine: Engine) -> None:
    assert engine.definitions.config.path is not None
    config = '[[hooks]]\non = ["hook_failed"]\ncommand = ["false"]'
    await asyncio.to_thread(Path(engine.definitions.config.path).write_text, config)
    await engine.reloader.reload(dry_run=False, by="me")
    (occasion,) = occasions(engine, an_event("hook_failed", None, on="dead"))
    await engine.hooks.tell(occasion)
    assert await told(engine, "hook_failed") == []


async def test_a_call_gets_the_facts_as_its_body(tmp_path: Path) -> None:
    bodies: list[Any] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode().lower()
        length = int(head.split("content-length: ")[1].split("\r\n")[0])
        bodies.append(json.loads(await reader.readexactly(length)))
        writer.write(b"HTTP/1.1 204 No Content\r\n\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, family=socket.AF_INET)
    port = server.sockets[0].getsockname()[1]
    config = f"""
    [[hooks]]
    on = ["queue_paused"]
    http = {{ method = "POST", url = "http://127.0.0.1:{port}/{{{{ event.data.name }}}}" }}
    """
    async with server, an_engine(tmp_path, config) as engine:
        (occasion,) = occasions(engine, an_event("queue_paused", None, name="bulk"))
        await engine.hooks.tell(occasion)
        assert await told(engine, "hook_failed") == []
    assert bodies[0]["event"]["data"] == {"name": "bulk"}


async def test_hooks_hear_what_lands(engine: Engine, tmp_path: Path) -> None:
    await engine.hooks.start()
    await engine.store.submit(say, Said("breaker_opened", {"task": "work"}))
    await engine.hooks.stop()  # which lets it finish
    assert json.loads((tmp_path / "seen.json").read_bytes())["event"]["data"]["task"] == "work"
