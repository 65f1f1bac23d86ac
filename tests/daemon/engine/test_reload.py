from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path

import pytest

from redrive.errors import ConfigProblem, TryLater
from redrive.protocol.commands import AddPipeline, RunOrder, Start, Started
from redrived.api.runs import start_runs
from redrived.engine.engine import Engine
from redrived.engine.order import CHUNK
from redrived.store import catalog
from redrived.store.database import Trouble
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.events import announced
from redrived.store.leases import lease
from redrived.store.picking import Room, TaskRules
from redrived.store.store import Connection
from redrived.store.unit import Landed
from support.engine import TESTER, running
from support.engines import an_engine, told

CONFIG = """
[queues.bulk]
operations = ["request", "download"]
[tasks.work]
command = ["true"]
queue = "bulk"
[tasks.old]
command = ["true"]
"""


@pytest.fixture
async def engine(tmp_path: Path) -> AsyncIterator[Engine]:
    async with an_engine(tmp_path, CONFIG) as made:
        yield made


def rewrite(engine: Engine, text: str) -> None:
    assert engine.definitions.config.path is not None
    Path(engine.definitions.config.path).write_text(text)


async def test_a_reload_tells_what_it_changed(engine: Engine) -> None:
    rewrite(engine, CONFIG.replace("[tasks.old]", "[tasks.new]") + "timeout = 5")
    reply = await engine.reloader.reload(dry_run=False, by="me")
    assert (reply.changed, reply.added, reply.removed) == (True, ["tasks.new"], ["tasks.old"])
    assert set(engine.definitions.tasks) == {"work", "new"}
    (event,) = await told(engine, "config_reloaded")
    assert event.data["by"] == "me"
    assert event.data["added"] == ["tasks.new"]


async def test_a_rehearsal_changes_nothing(engine: Engine) -> None:
    rewrite(engine, CONFIG.replace("[tasks.old]", "[tasks.new]"))
    reply = await engine.reloader.reload(dry_run=True, by="me")
    assert reply.added == ["tasks.new"]
    assert "old" in engine.definitions.tasks
    assert await told(engine) == []


async def test_a_config_that_names_what_is_not_there_changes_nothing(engine: Engine) -> None:
    rewrite(engine, CONFIG + "cwd = 'nowhere'")
    for dry_run in (True, False):
        with pytest.raises(ConfigProblem, match=r"\.toml:9: tasks\.old\.cwd: got .*/nowhere"):
            await engine.reloader.reload(dry_run=dry_run, by="me")
    assert engine.definitions.tasks["old"].cwd == str(Path(engine.definitions.config.folder))


async def test_a_bad_config_changes_nothing_and_is_told(engine: Engine) -> None:
    rewrite(engine, CONFIG + "retry = 'nobody'")
    with pytest.raises(ConfigProblem, match=r"\.toml:9: tasks\.old\.retry"):
        await engine.reloader.reload(dry_run=False, by="me")
    assert "old" in engine.definitions.tasks
    (event,) = await told(engine, "config_rejected")
    assert "tasks.old.retry" in event.data["problems"][0]


async def test_a_config_that_is_gone_changes_nothing(engine: Engine, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.rename(tmp_path / "elsewhere.toml")
    with pytest.raises(ConfigProblem):
        await engine.reloader.reload(dry_run=False, by="me")
    assert "old" in engine.definitions.tasks


async def test_what_only_a_restart_changes_refuses_the_whole_reload(engine: Engine) -> None:
    rewrite(engine, CONFIG + "[store]\nurl = 'sqlite:///other.db'\n[tasks.new]\ncommand = 'x'")
    with pytest.raises(ConfigProblem, match=r"store\.url cannot change while the daemon runs"):
        await engine.reloader.reload(dry_run=False, by="me")
    assert "new" not in engine.definitions.tasks
    reply = await engine.reloader.reload(dry_run=True, by="me")
    assert reply.needs_restart == ["store.url"]
    assert "only a restart" in reply.notes[0]


async def test_the_same_config_again_is_no_news(engine: Engine) -> None:
    reply = await engine.reloader.reload(dry_run=False, by="me")
    assert not reply.changed
    assert await told(engine) == []


async def test_jobs_of_a_task_that_is_gone_wait_and_the_plan_says_so(engine: Engine) -> None:
    rewrite(engine, CONFIG.replace("[tasks.old]", "[tasks.new]"))
    for words in ("1 job of it goes", "2 jobs of it go"):
        await engine.store.submit(enqueue, Order(jobs=[NewJob(task="old", queue="default")]))
        reply = await engine.reloader.reload(dry_run=True, by="me")
        assert reply.notes == [f"task old is gone: {words} on waiting until it is back"]
    assert (await engine.reloader.reload(dry_run=False, by="me")).notes == reply.notes


async def test_what_waits_is_put_into_the_new_order(engine: Engine) -> None:
    names = ["request", "download", None, "upload"]
    jobs = [
        NewJob(task="work", queue="bulk", operation=name, rank=rank)
        for name, rank in zip(names, (0, 1, 2, 2), strict=True)
    ]
    await engine.store.submit(enqueue, Order(jobs=jobs))
    rewrite(engine, CONFIG.replace('"request", "download"', '"upload", "download"'))
    await engine.reloader.reload(dry_run=False, by="me")
    room = Room(slots=4, tasks={"work": TaskRules()})
    leased = await engine.store.submit(lease, room)
    assert [job.id for job in leased.picked.jobs()] == [4, 2, 1, 3]


async def test_what_runs_is_put_into_the_new_order_for_it_may_wait_again(engine: Engine) -> None:
    jobs = [NewJob(task="work", queue="bulk", operation="download", rank=1)]
    await engine.store.submit(enqueue, Order(jobs=jobs))
    await engine.store.submit(lease, Room(slots=1, tasks={"work": TaskRules()}))
    rewrite(engine, CONFIG.replace('"request", "download"', '"download"'))
    await engine.reloader.reload(dry_run=False, by="me")

    def rank(connection: Connection) -> int:
        return int(connection.exec_driver_sql("SELECT rank FROM jobs").scalar_one())

    assert await engine.store.read(rank) == 0


async def test_a_long_queue_is_put_in_order_bit_by_bit(engine: Engine) -> None:
    jobs = [NewJob(task="work", queue="bulk", operation="download", rank=1)] * (CHUNK + 1)
    await engine.store.submit(enqueue, Order(jobs=jobs))
    groups = engine.store.writer.groups
    rewrite(engine, CONFIG.replace('"request", "download"', '"download"'))
    await engine.reloader.reload(dry_run=False, by="me")
    assert engine.store.writer.groups - groups == 4  # the catalog, the event, and two chunks


PIPELINES = """
[pipelines.first]
steps = [{ name = "a", task = "work" }]
[pipelines.second]
steps = [{ name = "a", task = "work" }]
"""


async def test_who_hears_of_a_reload_may_start_its_new_pipeline_at_once(engine: Engine) -> None:
    request = Start(pipeline="second", orders=[RunOrder()])
    starting: list[asyncio.Task[Started]] = []

    def hear(landed: Landed) -> None:
        if "config_reloaded" in [event.type for event in announced(landed)]:
            starting.append(asyncio.create_task(start_runs(engine, TESTER, request)))

    engine.store.landed.append(hear)
    rewrite(engine, CONFIG + PIPELINES)
    await engine.reloader.reload(dry_run=False, by="me")
    assert [started.runs for started in await asyncio.gather(*starting)] == [["r1"]]


async def check_nothing_was_changed(engine: Engine) -> None:
    assert "first" not in engine.definitions.config.pipelines
    assert await engine.store.read(catalog.size) == 0
    assert await told(engine) == []


async def test_a_catalog_that_does_not_take_one_pipeline_takes_none(engine: Engine) -> None:
    with closing(sqlite3.connect(engine.store.database.path)) as store:
        store.execute(
            "CREATE TRIGGER choosy BEFORE INSERT ON catalog WHEN NEW.name = 'second'"
            " BEGIN SELECT RAISE(ABORT, 'not this one'); END"
        )
    rewrite(engine, CONFIG + PIPELINES)
    with pytest.raises(sqlite3.IntegrityError, match="not this one"):
        await engine.reloader.reload(dry_run=False, by="me")
    await check_nothing_was_changed(engine)


async def test_a_store_in_trouble_refuses_the_whole_reload(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    rewrite(engine, CONFIG + PIPELINES)
    monkeypatch.setattr(engine.store.writer, "trouble", Trouble.FULL)
    with pytest.raises(TryLater, match="the store cannot take this now"):
        await engine.reloader.reload(dry_run=False, by="me")
    await check_nothing_was_changed(engine)


async def test_reloads_wait_for_each_other(engine: Engine) -> None:
    rewrite(engine, CONFIG.replace("[tasks.old]", "[tasks.new]"))
    both = [engine.reloader.reload(dry_run=False, by=name) for name in ("one", "two")]
    first, second = await asyncio.gather(*both)
    assert (first.changed, second.changed) == (True, False)
    assert len(await told(engine, "config_reloaded")) == 1


async def test_systemd_hears_the_begin_and_the_end_of_every_reload(engine: Engine) -> None:
    heard: list[str] = []
    engine.reloader.when_begun.append(lambda: heard.append("begun"))
    engine.reloader.when_over.append(heard.append)
    await engine.reloader.reload(dry_run=False, by="me")
    rewrite(engine, "nonsense")
    with pytest.raises(ConfigProblem):
        await engine.reloader.reload(dry_run=False, by="me")
    assert heard[:3] == ["begun", "the config has not changed", "begun"]
    assert heard[3].startswith("config rejected: ")
    assert "config.toml:1: " in heard[3]


KEYED = """
[daemon]
name = "n1"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 8
[tasks.work]
command = "until test -e go; do sleep 0.05; done"
concurrency_key = "{{ args.tenant }}"
"""


@pytest.mark.parametrize("more", ["concurrency = 3", ""], ids=["a larger limit", "no keys"])
async def test_what_waits_behind_a_key_goes_by_the_new_limit(tmp_path: Path, more: str) -> None:
    async with running(tmp_path, base=KEYED) as bench:
        ids = await bench.enqueue("work", 3, tenant="a")
        await bench.event("action_started", ids[0])
        new = KEYED + more if more else KEYED.replace("concurrency_key", "#")
        rewrite(bench.engine, new)
        await bench.engine.reloader.reload(dry_run=False, by="me")
        for id in ids:
            await bench.event("action_started", id)
        (tmp_path / "go").touch()
        for id in ids:
            await bench.ended(id)


async def test_a_playbook_that_is_added_meanwhile_brings_no_old_config_back(
    engine: Engine,
) -> None:
    for turn in range(30):  # of the loop, after which it comes
        tasks = f"[tasks.new{turn}]\ncommand = ['true']\n"
        rewrite(engine, CONFIG + tasks)
        reloading = asyncio.create_task(engine.reloader.reload(dry_run=False, by="me"))
        async with asyncio.TaskGroup() as adding:
            while not reloading.done():
                text = f"workflow: [{{step: a, type: shell, command: 'echo {turn}'}}]"
                playbook = AddPipeline(source=text, name=f"p{turn}")
                adding.create_task(engine.pipelines.add(playbook, "me"))
                for _ in range(turn):
                    await asyncio.sleep(0)
                await asyncio.sleep(0.001)
        await reloading
        assert f"new{turn}" in engine.definitions.tasks
        assert engine.pipelines.knows(f"p{turn}")
