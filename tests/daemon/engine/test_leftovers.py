"""What a killed daemon has left and SIGKILL does not end: its job waits for it, and only its job."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from redrive.clock import SystemClock
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act, Drain
from redrive.protocol.queries import Doctor, Why
from redrived.api import acting, pausing
from redrived.api.doctor import doctor
from redrived.api.why import why
from redrived.engine.attempt import Attempt
from redrived.engine.engine import Engine
from redrived.engine.leftovers import Leftover
from redrived.processes.cgroup import Cgroup
from redrived.processes.cgroups import Cgroups
from redrived.store.leases import lease
from support.daemon import soon
from support.engine import BASE, TESTER, Bench, at_work, still
from support.ice import Ice
from support.trial import trial

MOUNTS = (Path("/sys/fs/cgroup"), Path("/sys/fs/cgroup/unified"))
TASKS = """
[pools.default]
path = ["."]
processes = 1

[tasks.command]
command = ["sleep", "60"]
[tasks.handler]
python = "handlers:hang"
[tasks.say]
command = ["echo", "said"]
"""
HANDLERS = "import time\n\ndef hang():\n    time.sleep(60)\n"


@pytest.fixture
def group() -> Iterator[Cgroup]:
    above = next((mount for mount in MOUNTS if os.access(mount / "cgroup.procs", os.W_OK)), None)
    if above is None:
        pytest.skip("needs root and cgroup v2")
    made = Cgroup(above).create(f"test-{uuid.uuid4()}")
    assert made is not None
    yield made
    made.remove()


@asynccontextmanager
async def an_impatient_engine(
    folder: Path, cgroups: Cgroups | None = None
) -> AsyncIterator[Engine]:
    async with still(folder, BASE + TASKS, SystemClock(), cgroups) as engine:
        engine.trees._patience = 0.2  # pyright: ignore[reportPrivateUsage]
        yield engine


@asynccontextmanager
async def restarted(folder: Path, cgroups: Cgroups | None = None) -> AsyncIterator[Bench]:
    """The next daemon, at work on what an earlier one has left."""
    async with an_impatient_engine(folder, cgroups) as engine:
        bench = Bench(engine)
        async with at_work(engine):
            yield bench


def left_frozen(folder: Path, ice: Ice, task: str) -> tuple[int, int]:
    """A job whose daemon was killed, and its process, which cannot be."""
    with trial(folder, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue(task)
        daemon.until_told(id, "action_started")
        usage = daemon.ask.show_job(id).usage
        assert usage is not None
        [pid] = usage.pids
        ice.freeze(pid)
        daemon.pull_the_plug()
    return id, pid


async def complaints(engine: Engine) -> dict[str, str]:
    checks = (await doctor(engine, TESTER, Doctor())).checks
    return {check.name: check.text for check in checks if not check.ok}


@pytest.mark.parametrize("task", ["command", "handler"])
async def test_its_job_is_told_of_and_settled_when_it_is_gone(
    folder: Path, ice: Ice, task: str
) -> None:
    id, pid = left_frozen(folder, ice, task)
    words = f"SIGKILL does not end process {pid}"
    for n in (1, 2):  # daemons that come and go meanwhile
        async with restarted(folder) as bench:
            event = await bench.event("action_unkillable", id)
            assert event.data["unkillable"] == [pid]
            assert await complaints(bench.engine) == {f"job {id}": words}
            told = await why(bench.engine, TESTER, Why(id=str(id)))
            assert told.text == f"{words}: it is being ended; once that is gone, its policy decides"
            [other] = await bench.enqueue("say")  # no other job waits for it
            assert (await bench.ended(other)).state is JobState.DONE
            job = await bench.job(id)
            assert (job.state, job.attempts) == (JobState.LEASED, 1)
            if n == 2:
                ice.thaw()
                job = await bench.ended(id)
                assert (job.state, job.attempts) == (JobState.DEAD, 1)
                assert await complaints(bench.engine) == {}
    assert job.error is not None
    assert job.error.error_type == "lost"


async def test_its_job_can_be_killed_meanwhile(folder: Path, ice: Ice) -> None:
    id, _ = left_frozen(folder, ice, "command")
    async with restarted(folder) as bench:
        await bench.event("action_unkillable", id)
        await acting.act(bench.engine, TESTER, Act(verb="kill", ids=[str(id)]))
        assert (await why(bench.engine, TESTER, Why(id=str(id)))).saw["by"] == "tester"
        ice.thaw()
        assert (await bench.ended(id)).state is JobState.CANCELLED
        assert (await bench.event("job_killed", id)).data["by"] == "tester"


async def test_a_drain_neither_counts_nor_ends_it(folder: Path, ice: Ice) -> None:
    id, _ = left_frozen(folder, ice, "command")
    async with restarted(folder) as bench:
        await bench.event("action_unkillable", id)
        [other] = await bench.enqueue("command")
        await soon(lambda: bench.engine.attempts.get(other), "it runs")
        drained = await pausing.drain(bench.engine, TESTER, Drain(stop=False))
        assert drained.data["running"] == 1
        assert [attempt.job.id for attempt in bench.engine.under_way] == [other]


async def test_it_is_named_by_itself_once_its_job_has_begun_anew(folder: Path, ice: Ice) -> None:
    id, pid = left_frozen(folder, ice, "command")
    async with restarted(folder) as bench:
        attempts = bench.engine.attempts
        old = attempts.get(id)
        assert old is not None
        assert "leftovers" not in await complaints(bench.engine)
        anew = old.job._replace(lease=old.job.lease + 1)
        attempts.add(Attempt(anew, old.definition, Leftover([]), 0, 0.0))
        told = f"SIGKILL does not end process {pid}"
        assert (await complaints(bench.engine))["leftovers"] == told


async def test_its_job_is_watched_when_a_worker_begins_it_anew(folder: Path) -> None:
    (folder / "handlers.py").write_text(HANDLERS)
    async with restarted(folder) as bench:
        engine = bench.engine
        await soon(lambda: engine.python.berths()["default"], "a worker is ready")
        engine.dispatcher.close()  # it is leased and handed over here, as part of a larger hand
        [id] = await bench.enqueue("handler")
        leased = await engine.store.submit(lease, engine.dispatcher.room())
        [berth] = leased.picked.berths
        [job] = berth.jobs
        definition = engine.definitions.tasks["handler"]
        old = job._replace(lease=job.lease - 1)
        engine.attempts.add(Attempt(old, definition, Leftover([]), 0, 0.0))
        engine.python.hand(berth, begun=False, at=leased.at)
        await soon(lambda: engine.attempts.get(id, job.lease), "the new attempt is watched")


@pytest.mark.parametrize(("task", "name"), [("command", "1.1"), ("handler", "worker.default.1")])
async def test_who_has_cleared_its_environment_is_known_by_its_cgroup(
    folder: Path, ice: Ice, group: Cgroup, task: str, name: str
) -> None:
    with trial(folder, TASKS, HANDLERS) as daemon:
        daemon.start()
        id = daemon.enqueue(task)
        daemon.until_told(id, "action_started")
        daemon.pull_the_plug()
    stranger = subprocess.Popen(["sleep", "60"], env={}, start_new_session=True)
    made = group.create(name)
    assert made is not None
    made.add(stranger.pid)
    ice.freeze(stranger.pid)
    async with restarted(folder, Cgroups(group, (group,))) as bench:
        event = await bench.event("action_unkillable", id)
        assert event.data["unkillable"] == [stranger.pid]
        assert (await bench.job(id)).state is JobState.LEASED
        ice.thaw()
        await soon(lambda: stranger.poll() is not None, "it is gone")
        assert (await bench.ended(id)).state is JobState.DEAD


async def test_one_that_is_of_no_job_is_named_by_itself(folder: Path, ice: Ice) -> None:
    async with an_impatient_engine(folder) as engine:
        marked = {**os.environ, "REDRIVE_STORE": engine.trees.owner}
        stranger = subprocess.Popen(["sleep", "60"], env=marked, start_new_session=True)
        ice.freeze(stranger.pid)
        async with at_work(engine):
            told = {"leftovers": f"SIGKILL does not end process {stranger.pid}"}
            assert await complaints(engine) == told
            ice.thaw()
            await soon(lambda: stranger.poll() is not None, "it is gone")
            assert await complaints(engine) == {}
