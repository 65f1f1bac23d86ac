"""The counts of a queue say what could begin now, and what waits for more than a slot."""

from __future__ import annotations

from pathlib import Path

from redrive.lifecycle import JobState
from redrive.protocol.commands import Enqueue, JobOrder, PauseIt
from redrive.protocol.queries import Doctor, ListNodes, ListQueues, Status
from redrive.protocol.rows import QueueRow
from redrived.api import pausing
from redrived.api.doctor import doctor
from redrived.api.status import list_nodes, list_queues, status
from redrived.engine.node import Node
from redrived.notify import Notifier
from redrived.store.enqueue import NewJob, Order, enqueue
from support.engine import TESTER, Bench, running

CONFIG = """
[queues.slow]
concurrency = 1
[tasks.work]
command = ["sleep", "60"]
queue = "slow"
[tasks.other]
command = ["true"]
queue = "slow"
"""
SCHEDULE = """
[schedules.nightly]
task = "other"
every = "1d"
"""


async def slow(bench: Bench) -> QueueRow:
    """The queue, as the status and the list of queues have it."""
    reply = await status(bench.engine, TESTER, Status())
    page = await list_queues(bench.engine, TESTER, ListQueues())
    [told] = [queue for queue in reply.queues if queue.name == "slow"]
    [listed] = [queue for queue in page.queues if queue.name == "slow"]
    assert told == listed
    return told


async def test_ready_is_what_waits_for_nothing_but_a_slot(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        [first] = await bench.enqueue("work")
        await bench.event("action_started", first)
        orders = [JobOrder(), JobOrder(delay=3600.0), JobOrder(delay=3600.0), JobOrder(hold=True)]
        await bench.order(Enqueue(task="work", orders=orders))
        await bench.enqueue("other", 2)

        queue = await slow(bench)
        assert queue.states == {"queued": 6, "leased": 1}
        assert (queue.ready, queue.scheduled, queue.held) == (3, 2, 1)
        assert queue.of_paused_tasks == 0


async def test_jobs_of_a_paused_task_are_not_ready(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        await pausing.pause(bench.engine, TESTER, PauseIt(name="task:other"))
        await bench.order(Enqueue(task="other", orders=[JobOrder(), JobOrder(hold=True)]))

        queue = await slow(bench)
        assert (queue.ready, queue.of_paused_tasks, queue.held) == (0, 1, 1)
        assert queue.oldest_ready_at is None


async def test_a_queue_without_jobs_has_nothing_scheduled(tmp_path: Path) -> None:
    async with running(tmp_path, CONFIG) as bench:
        queue = await slow(bench)
        assert (queue.ready, queue.scheduled, queue.held, queue.retrying) == (0, 0, 0, 0)


async def test_the_slots_in_use_are_told_as_they_are_now(tmp_path: Path) -> None:
    """The row of a node is as old as its last beat, which here there never is another of."""
    async with running(tmp_path, CONFIG) as bench:
        await Node(bench.engine, Notifier()).arrive()
        [id] = await bench.enqueue("work")
        await bench.event("action_started", id)

        [node] = (await status(bench.engine, TESTER, Status())).nodes
        assert (node.busy, node.slots) == (1, 4)
        page = await list_nodes(bench.engine, TESTER, ListNodes())
        assert page.nodes == [node]


async def test_what_needs_attention_leads_to_the_jobs_it_is_about(tmp_path: Path) -> None:
    """A name alone would be looked for as text, in the arguments of every job there is."""
    async with running(tmp_path, CONFIG + SCHEDULE) as bench:
        for name in ("queue:slow", "task:other", "schedule:nightly"):
            await pausing.pause(bench.engine, TESTER, PauseIt(name=name))
        gone = NewJob(task="gone", queue="slow")
        await bench.engine.store.submit(enqueue, Order(jobs=[gone]))

        found = (await status(bench.engine, TESTER, Status())).attention
        assert {(one.kind, one.screen, one.where) for one in found} == {
            ("paused", "jobs", "queue:slow state:queued,retry"),
            ("paused", "jobs", "task:other state:queued,retry"),
            ("paused", "schedules", "nightly"),
            ("unknown task", "jobs", "task:gone state:queued,retry"),
        }


async def test_a_preload_that_fails_is_told_of_though_the_pool_works(tmp_path: Path) -> None:
    (tmp_path / "handlers.py").write_text("def work(): ...\n")
    config = '[pools.default]\npath = ["."]\npreload = ["nowhere"]\n'
    config += '[tasks.work]\npython = "handlers:work"\n'
    told = "preload of nowhere failed: ModuleNotFoundError: No module named 'nowhere'"
    async with running(tmp_path, config) as bench:
        [id] = await bench.enqueue("work")
        assert (await bench.ended(id)).state is JobState.DONE

        [found] = (await status(bench.engine, TESTER, Status())).attention
        assert (found.severity, found.text) == ("warning", f"pool default: {told}")
        checks = (await doctor(bench.engine, TESTER, Doctor())).checks
        [bad] = [check for check in checks if check.name.endswith(" default") and not check.ok]
        assert (bad.name, bad.text) == ("preload default", told)
