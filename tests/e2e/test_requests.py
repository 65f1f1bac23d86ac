"""Requests and what can happen around them: crashes, replays, a second daemon, who asked."""

from __future__ import annotations

import asyncio
import getpass
import random
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Self

import pytest
import zmq

from redrive.client import AnswerLost, AsyncClient
from redrive.clock import SECOND, SystemClock
from redrive.errors import DoneBefore, Exit, RedriveError, UsageProblem
from redrive.lifecycle import JobState
from redrive.protocol.codec import decode_answer, encode_call
from redrive.protocol.commands import Enqueue, JobOrder, PauseIt
from support.daemon import BASE, PATIENCE, Daemon, eventually
from support.trial import Trial, trial

TASKS = """
[retry.once]
max_attempts = 1
[tasks.say]
command = ["echo", "said"]
[tasks.sleep]
command = ["sleep", "600"]
grace = "200ms"
[tasks.fail]
command = ["false"]
retry = "once"
[schedules.never]
task = "say"
cron = "0 0 1 1 *"
[pipelines.one]
steps = [{ name = "say", task = "say" }]
"""
PLAYBOOK = """
name: book
workflow:
  - {step: say, type: shell, command: "true"}
"""


@pytest.fixture
def daemon(tmp_path: Path) -> Iterator[Trial]:
    with trial(tmp_path, TASKS) as made:
        made.start()
        yield made


# ---- a crash between the change and its answer -------------------------------------------------


def test_what_was_carried_out_before_a_crash_is_not_done_again(daemon: Trial) -> None:
    request = Enqueue(task="say", orders=[JobOrder(args={"n": 1})])
    daemon.ask.ask(request, id="mine")
    daemon.ask.ask(PauseIt(name="queue:default"), id="pause")
    daemon.pull_the_plug()
    daemon.start()

    assert daemon.ask.fate("mine").known
    assert daemon.ask.fate("pause").known
    assert not daemon.ask.fate("never_sent").known
    with pytest.raises(DoneBefore):
        daemon.ask.ask(request, id="mine")
    with pytest.raises(UsageProblem, match="used for another request"):
        daemon.ask.ask(PauseIt(name="task:say"), id="mine")
    assert sum(daemon.ask.status().states.values()) == 1


def test_what_was_refused_before_a_crash_may_be_asked_again(daemon: Trial) -> None:
    with pytest.raises(RedriveError):
        daemon.ask.ask(PauseIt(name="queue:nowhere"), id="mine")
    daemon.pull_the_plug()
    daemon.start()
    assert not daemon.ask.fate("mine").known
    daemon.ask.ask(PauseIt(name="queue:default"), id="mine")


async def test_however_often_the_daemon_is_killed_each_request_is_carried_out_once(
    daemon: Trial,
) -> None:
    """Whoever lost an answer sends the same again, until somebody says that it is done."""
    dice = random.Random(40)
    daemon.hang_up()
    total, askers = 400, 8
    numbers = iter(range(total))
    done: list[int] = []

    async def enqueue_all() -> None:
        async with AsyncClient(daemon.config, timeout=1.0) as client:
            for n in numbers:
                await enqueue(client, n)
                done.append(n)

    async def enqueue(client: AsyncClient, n: int) -> None:
        request = Enqueue(task="say", orders=[JobOrder(args={"n": n})])
        while True:
            try:
                await client.ask(request, id=f"request-{n}")
            except DoneBefore:
                return
            except (RedriveError, AnswerLost):
                await asyncio.sleep(0.02)
            else:
                return

    async def kill_now_and_then() -> None:
        while len(done) < total:
            await asyncio.sleep(dice.uniform(0.02, 0.2))  # the moment is the test
            await asyncio.to_thread(daemon.kill)
            await asyncio.to_thread(daemon.start)

    async with asyncio.TaskGroup() as group:
        for _ in range(askers):
            group.create_task(enqueue_all())
        group.create_task(kill_now_and_then())

    started = [event for event in daemon.events() if event.type == "step_started"]
    assert len(started) == total
    assert sorted(daemon.job(event.job or 0).args["n"] for event in started) == list(range(total))


# ---- replays -----------------------------------------------------------------------------------


class Wire:
    """Bytes to and from `control`, as whoever has captured them would send them."""

    def __init__(self, daemon: Daemon) -> None:
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._socket = self._context.socket(zmq.DEALER)
        self._socket.connect(f"ipc://{daemon.folder}/run/control")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close(0)
        self._context.term()

    def send(self, data: bytes) -> None:
        self._socket.send(data)

    def receive(self) -> bytes:
        assert self._socket.poll(round(PATIENCE * 1000)), "no answer"
        return self._socket.recv()


def test_s09_a_captured_command_is_answered_the_same_and_done_once(daemon: Trial) -> None:
    captured = encode_call("a", Enqueue(task="say", orders=[JobOrder()]), 10.0, SystemClock().now())
    answers: list[bytes] = []
    for _ in range(3):
        with Wire(daemon) as wire:
            wire.send(captured)
            answers.append(wire.receive())
    assert len(set(answers)) == 1
    assert [event.type for event in daemon.events()].count("step_started") == 1


def test_s09_a_captured_command_is_not_done_after_its_deadline(daemon: Trial) -> None:
    long_ago = SystemClock().now() - 11 * SECOND
    with Wire(daemon) as wire:
        wire.send(encode_call("a", Enqueue(task="say", orders=[JobOrder()]), 10.0, long_ago))
        refusal = decode_answer(wire.receive()).refusal
    assert refusal is not None
    assert (refusal.code, refusal.exit_code) == ("try_later", Exit.TRY_LATER)
    assert "nothing was changed" in refusal.hint
    assert sum(daemon.ask.status().states.values()) == 0


def test_a_command_to_a_daemon_that_stands_still_is_not_done_when_it_goes_on(
    daemon: Trial,
) -> None:
    daemon.ask.hello(as_operator=True)
    daemon.signal(signal.SIGSTOP)
    with pytest.raises(AnswerLost) as lost:
        daemon.ask.ask(PauseIt(name="queue:default"), timeout=0.2)
    daemon.signal(signal.SIGCONT)

    daemon.ask.ask(PauseIt(name="task:say"))  # comes after it by the same socket
    assert not daemon.ask.fate(lost.value.request).known
    assert [pause.kind for pause in daemon.ask.status().paused] == ["task"]


# ---- a second daemon ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("change", "shared"),
    [
        (("", ""), "state"),
        (('state_dir = "./state"', 'state_dir = "./other"'), "runtime"),
        (('"./run"', '"./other"'), "state"),
    ],
    ids=["the same config", "the same sockets", "the same store"],
)
def test_f23_a_second_daemon_exits_with_69_and_the_first_one_is_unharmed(
    daemon: Trial, change: tuple[str, str], shared: str
) -> None:
    sockets = {path: path.stat().st_ino for path in (daemon.folder / "run").iterdir()}
    config = daemon.folder / "second.toml"
    config.write_text((BASE + TASKS).replace(*change))

    second = subprocess.run(
        [sys.executable, "-m", "redrived", "--config", str(config)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert second.returncode == Exit.UNAVAILABLE, second
    assert f"another redrived (pid {daemon.pid}) holds" in second.stderr
    assert f"a second one needs a {shared}_dir of its own" in second.stderr
    assert {path: path.stat().st_ino for path in (daemon.folder / "run").iterdir()} == sockets
    assert daemon.until_ended(daemon.enqueue("say")).state is JobState.DONE


# ---- who asked ---------------------------------------------------------------------------------


def test_s28_every_change_is_an_event_that_says_who_asked(daemon: Trial) -> None:
    (daemon.folder / "book.yaml").write_text(PLAYBOOK)
    failed = [daemon.until_ended(daemon.enqueue("fail")).id for _ in range(3)]
    running, waiting = daemon.enqueue("sleep"), daemon.enqueue("say")
    daemon.until_told(running, "action_started")
    commands = {
        "enqueue say": "step_started",
        "start one": "execution_started",
        "trigger never": "schedule_fired",
        "pause queue:default": "queue_paused",
        "pause task:say": "task_paused",
        "pause schedule:never": "schedule_paused",
        f"requeue --force {failed[0]}": "job_requeued",
        f"hold {failed[0]}": "job_held",
        f"release {failed[0]}": "job_released",
        f"run-now {failed[0]}": "job_run_now",
        f"cancel {failed[0]}": "job_cancelled",
        f"restart {running}": "job_restarted",
        f"discard {failed[1]}": "job_discarded",
        "requeue --where state:dead --pace 1/h --force --yes": "redrive_started",
        "pause redrive:1": "redrive_paused",
        "resume redrive:1": "redrive_resumed",
        "undo 1": "redrive_undone",
        "resume queue:default": "queue_resumed",
        "resume task:say": "task_resumed",
        "resume schedule:never": "schedule_resumed",
        "pipeline add book.yaml": "pipeline_added",
        f"backup {daemon.folder}/copy.db": "store_backed_up",
        "reload": "config_reloaded",
        "drain --no-stop": "node_draining",
    }
    assert waiting
    for command, kind in commands.items():
        if command == "reload":
            daemon.config.write_text(daemon.config.read_text() + '[tasks.new]\ncommand = "x"\n')
        before = daemon.events()[-1].seq
        done = daemon.run(*command.split())
        assert done.returncode == Exit.OK, done

        def named(kind: str = kind, before: int = before) -> list[str]:
            new = (event for event in daemon.events() if event.seq > before)
            return [event.data.get("by", "") for event in new if event.type == kind]

        assert set(eventually(named, f"{kind} after `{command}`")) == {getpass.getuser()}, command
