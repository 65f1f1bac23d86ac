"""Every command in docs/commands.md and docs/operations.md, typed against a real daemon.

The ids in the examples (12, r7, redrive 3) stand for whatever fits the verb, so each is made
anew: a dead job to requeue, a running one to kill. What belongs to the machine (`/var`, `sudo`,
the unit of the system) is turned to the test's own folder; what is no command of ours is left
out. README.md and the lessons are typed as they stand, in tests/test_docs.py.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redrive.errors import Exit
from redrive.lifecycle import JobState
from redrive.protocol.commands import Act, ResumeIt
from support.daemon import PATIENCE, eventually
from support.markdown import shell_lines
from support.pages import DOCS
from support.trial import Trial

CONFIG = """
[bus]
curve = "keys/"
[queues.bulk]
[queues.manual]
[retry.fetch]
max_attempts = 2
delays = ["10ms"]
[retry.once]
max_attempts = 1
[tasks.parse]
command = 'test "$REDRIVE_ARG_PATH" != broken'
[tasks.report]
command = ["true"]
[tasks.sync]
command = ["true"]
[tasks.noop]
command = ["true"]
[tasks.fetch]
command = ["true"]
retry = "fetch"
[tasks.sleep]
command = ["sleep", "600"]
grace = "100ms"
[tasks.fail]
command = "echo 'timed out' >&2; exit 1"
queue = "bulk"
retry = "once"
[pipelines.ingest]
steps = [{ name = "parse", task = "parse" }]
[pipelines.fetch]
steps = [{ name = "fetch", task = "fetch" }]
[schedules.nightly]
task = "report"
cron = "0 3 * * *"
"""
PLAYBOOK = """
name: playbook
workflow:
  - {step: say, type: shell, command: "true"}
"""
LINES = list(
    dict.fromkeys(
        line.text
        for page in ("commands.md", "operations.md")
        for line in shell_lines(DOCS / page)
        if re.match(r"(sudo (-u \w+ )?)?(eval \"\$\()?redrive\b", line.text)
        # These have tests of their own: in a terminal, and on PostgreSQL.
        and not re.search(r"redrive (--config \S+ )?(up|demo|outbox)\b", line.text)
    )
)
ENDLESS = ("status --watch", "events -f")
INTERRUPTED = 130


class World(Trial):
    """A daemon in which every example finds what it is about."""

    def prepare(self) -> World:
        """Files that examples name, and two versions of a pipeline."""
        write = {
            "jobs.ndjson": '{"args": {"path": "a"}}\n{"args": {"path": "b"}, "queue": "bulk"}\n',
            "items.ndjson": '{"args": {"item": 1}, "key": "one"}\n{"key": "two"}\n',
            "new.toml": self.config.read_text(),
            "playbook.yaml": PLAYBOOK,
        }
        for name, text in write.items():
            (self.folder / name).write_text(text)
        (self.folder / "completions").mkdir()
        self.start()
        changed = self.config.read_text().replace('name = "parse"', 'name = "parse", delay = "1ms"')
        self.config.write_text(changed)
        assert self.run("reload").returncode == Exit.OK
        return self

    def be_ready(self) -> None:
        """Whatever the line before has done: up, and at work."""
        if self.process is None or self.process.poll() is not None:
            self.hang_up()
            self.start()
        if self.ask.status().state == "draining":
            self.hang_up()
            self.stop()
            self.start()
        for pause in self.ask.status().paused:
            self.ask.ask(ResumeIt(name=f"{pause.kind}:{pause.name}"))

    # ---- what ids stand for --------------------------------------------------------------------

    def done(self) -> int:
        return self.until_ended(self.enqueue("noop")).id

    def dead(self) -> int:
        return self.until_ended(self.enqueue("fail")).id

    def running(self) -> int:
        id = self.enqueue("sleep")
        self.until_told(id, "action_started")
        return id

    def waiting(self) -> int:
        return self.ask.enqueue("noop", delay=3600.0).id

    def held(self) -> int:
        id = self.waiting()
        self.ask.act("hold", str(id))
        return id

    def done_run(self) -> str:
        return self.run_in("done", "a.zip")

    def failed_run(self) -> str:
        return self.run_in("failed", "broken")

    def run_in(self, state: str, path: str) -> str:
        id = self.ask.start("ingest", {"path": path}).first_id
        eventually(lambda: self.ask.run(id).state == state, f"{id} is {state}")
        return id

    def redrive(self) -> int:
        """One that has hardly begun."""
        ids = [str(self.dead()) for _ in range(3)]
        begun = self.ask.ask(Act(verb="requeue", ids=ids, pace="1/h", force=True))
        assert begun.redrive is not None
        return int(begun.redrive)

    def fingerprint(self) -> str:
        error = self.job(self.dead()).error
        assert error is not None
        return error.fingerprint


JOBS: dict[str, Callable[[World], int]] = {
    "requeue": World.dead,
    "discard": World.dead,
    "cancel": World.waiting,
    "hold": World.waiting,
    "run-now": World.waiting,
    "release": World.held,
    "kill": World.running,
    "restart": World.running,
}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder = tmp_path_factory.mktemp("world")
    made = World(folder, CONFIG).prepare()
    yield made
    made.hang_up()
    if made.process is not None and made.process.poll() is None:
        made.ask.act("kill", where="state:leased")
        made.hang_up()
        made.stop()


def as_it_is_here(world: World, line: str) -> str:
    """The line, about what there is in this world."""
    if line.startswith("sudo") and "systemd install" in line:
        line = "redrive systemd install --print"
    line = re.sub(r"^sudo (-u \w+ )?", "", line).replace("--config /etc/redrive/config.toml ", "")
    verb = shlex.split(line.replace("$", "_"), comments=True)[1:]
    line = re.sub(r"/var/backups/", f"{world.folder}/", line)
    line = line.replace("~/.config/fish", str(world.folder)).replace("--node w2", "--node n1")
    if verb[0] in ("undo", "pause") and re.search(r"\b3$", line):
        line = re.sub(r"\b3$", str(world.redrive()), line)
    if "FINGERPRINT" in line:
        line = line.replace("FINGERPRINT", world.fingerprint())
    make_job = JOBS.get(verb[0], World.done)
    line = re.sub(r"(?<= )1[234](?= |$)", lambda _: str(make_job(world)), line)
    make_run = World.failed_run if verb[0] == "requeue" else World.done_run
    line = re.sub(r"(?<= )r7(?= |$)", lambda _: make_run(world), line)
    if "--where" in line and verb[0] == "requeue" and "--dry-run" not in line:
        line += " --yes"  # nobody can be asked
    return line


@pytest.mark.parametrize("line", LINES)
def test_every_documented_command_does_what_it_says(world: World, line: str) -> None:
    if "| jq " in line and shutil.which("jq") is None:
        pytest.skip("jq is not installed here")
    world.be_ready()
    typed = as_it_is_here(world, line)
    if " restore " in typed:
        take_a_backup_and_stop(world, typed.split()[-1])
    for shell in ("zsh", "fish"):
        typed = typed.replace(
            f'eval "$(redrive completion {shell})"', f"redrive completion {shell}"
        )
    process = subprocess.Popen(
        ["bash", "-c", typed],
        cwd=world.folder,
        env={**environment(), "HOME": str(world.folder)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    expected = 0
    if typed.endswith(ENDLESS):
        expected = INTERRUPTED
        assert process.stdout is not None
        assert process.stdout.readline(), typed
        os.killpg(process.pid, signal.SIGINT)
    out, err = process.communicate(timeout=2 * PATIENCE)

    assert process.returncode == expected, f"{typed}\n{out}{err}"
    assert "Traceback" not in err, f"{typed}\n{err}"
    if typed == "redrive drain":
        assert world.process is not None
        assert world.process.wait(PATIENCE) == 0


def take_a_backup_and_stop(world: World, name: str) -> None:
    (world.folder / Path(name).name).unlink(missing_ok=True)
    assert world.run("backup", name).returncode == Exit.OK
    world.hang_up()
    assert world.stop() == 0


def environment() -> dict[str, str]:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}


def test_the_examples_are_most_of_what_there_is() -> None:
    assert len(LINES) > 80


def test_a_job_that_an_example_is_about_is_in_the_state_it_needs(world: World) -> None:
    """Or the examples would be refused, and this file would have to believe it."""
    world.be_ready()
    assert world.job(world.dead()).state is JobState.DEAD
    assert world.job(world.held()).held
    assert world.job(world.running()).state is JobState.LEASED
