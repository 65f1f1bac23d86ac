"""One rule for every command, as docs/commands.md has it.

2 is for what was typed, whatever there is; 1 for what is not there or cannot be done; the
others say who refused. Commands run in the test's process, the daemon in its own.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from redrive.cli.main import run
from redrive.errors import Exit
from support.trial import Trial

CONFIG = """
[queues.bulk]
[queues.both]
[retry.once]
max_attempts = 1
[tasks.fine]
command = ["true"]
[tasks.both]
command = ["true"]
[tasks.fail]
command = ["false"]
retry = "once"
[tasks.never]
command = "exit 64"
[pipelines.one]
steps = [{ name = "only", task = "fine" }]
[schedules.nightly]
task = "fine"
cron = "0 3 * * *"
"""
# FINE, DEAD, NEVER, AGAIN and RUN stand for a job that is done, one that is dead, one that is
# dead for good, one that was requeued just before, and a run that is done.
TABLE = {
    Exit.OK: """
        status
        jobs --where queue:nope
        runs --where state:failed
        events 1
        events RUN
        groups --where queue:bulk
        queues --where nope
        cancel --where queue:nope --yes
        requeue --where queue:nope --yes
        cancel 1 --dry-run
        cancel 999 --dry-run
        enqueue fine
        enqueue fine --wait
        wait FINE
        classify nonsense
        policy default
        pause bulk
        pause bulk
        resume bulk
        redrives
        config check
        reload --dry-run
        pipeline list
        completion bash
    """,
    Exit.FAILED: """
        show 999
        show r999
        why 999
        why r999
        events 999
        events r999
        events 999 --last 3
        logs 999
        logs FINE --attempt 9
        wait 999
        wait r999
        cancel 999
        cancel r999
        cancel FINE
        cancel FINE 999 --yes
        hold RUN
        discard RUN
        requeue FINE
        requeue RUN --from nope --yes
        enqueue nope
        enqueue fine --queue nope
        enqueue fail --wait
        start nope
        trigger nope
        pause nope
        pause queue:nope
        resume task:nope
        pause redrive:999
        resume redrive:999
        undo 999
        drain --node nope
        policy nope
        classify text --task nope
        pipeline show nope
        pipeline show one --version 9
        queues --after nope
        backup TMP/nowhere/copy.db
        backup TMP/config.toml
    """,
    Exit.USAGE: """
        nope
        config nope
        config
        show
        show x7
        show 0
        logs r1
        logs 1 --attempt 0
        logs 1 --follow --json
        pause redrive:x
        events 1 2
        events --after x
        jobs --where stat:x
        jobs --where state:nope
        jobs --where id>x
        jobs --sort nope
        jobs --limit 0
        jobs --after nonsense
        jobs --nope
        runs --where nope:x
        runs --sort nope
        queues --where nope:x
        queues --sort nope
        groups --where stat:x
        cancel
        cancel 1 2
        cancel --where state:queued
        cancel --where ''
        cancel 1 --where state:queued
        requeue 1 --pace often
        requeue 1 --stop-at 0
        requeue 1 --canary 0
        requeue 1 --from only
        requeue 1 --from only --dry-run
        requeue --where state:dead --from only --yes
        requeue RUN --pace 5/min
        requeue RUN 1 --canary 1 --yes
        enqueue fine --timeout 5s
        start one --timeout 5s
        enqueue
        enqueue fine novalue
        enqueue fine --args [1]
        enqueue fine --delay soon
        enqueue fine --at soon
        enqueue fine --delay 1s --at 2030-01-01T00:00:00Z
        enqueue fine --count 2 --from-file TMP/config.toml
        enqueue fine --count 100000000
        enqueue fine --from-file TMP/nowhere
        enqueue fine --from-file TMP/config.toml
        start one --from-file TMP/config.toml
        pause both
        wait
        wait 1 --timeout soon
        undo x
        keys new a/b --role king
        completion tcsh
        rules test --since ever
        pipeline add TMP/nowhere
        systemd install --user --strict
    """,
    Exit.TRY_LATER: "requeue AGAIN",
    Exit.NOT_ALLOWED: """
        requeue NEVER
        requeue RUN
    """,
    Exit.CONFIG: """
        --config TMP/nowhere.toml status
        --config TMP/bad.toml status
        --config TMP/bad.toml config check
        keys list
        keys new anna
    """,
    Exit.TIMED_OUT: """
        wait LATER --timeout 10ms
        enqueue fine --delay 1h --wait --timeout 10ms
    """,
    Exit.UNAVAILABLE: """
        --config TMP/elsewhere.toml status
        --config TMP/elsewhere.toml enqueue fine
        --config TMP/elsewhere.toml events -f
    """,
}
LINES = [
    pytest.param(line.strip(), code, id=line.strip())
    for code, lines in TABLE.items()
    for line in lines.strip().splitlines()
]


class World(Trial):
    names: dict[str, str]

    def prepare(self) -> None:
        (self.folder / "bad.toml").write_text("[daemon]\nruntime_dir = 7\n")
        elsewhere = '[daemon]\nstate_dir = "other"\nruntime_dir = "other"\n'
        (self.folder / "elsewhere.toml").write_text(elsewhere)
        made = {name: self.until_ended(self.enqueue(task)).id for name, task in TASKS.items()}
        self.ask.act("requeue", made["AGAIN"])
        self.until_told(made["AGAIN"], "step_retry_exhausted", 2)
        run = self.ask.start("one").first_id
        self.ask.wait(run, timeout=30.0)
        self.names = {name: str(id) for name, id in made.items()} | {
            "RUN": run,
            "LATER": str(self.ask.enqueue("fine", delay=3600.0).id),
            "TMP": str(self.folder),
        }

    def spelt_out(self, line: str) -> list[str]:
        for name, meant in self.names.items():
            line = line.replace(name, meant)
        return shlex.split(line)


TASKS = {"FINE": "fine", "DEAD": "fail", "NEVER": "never", "AGAIN": "fail"}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    made = World(tmp_path_factory.mktemp("world"), CONFIG)
    made.start()
    made.prepare()
    yield made
    made.hang_up()
    made.stop()


@pytest.mark.parametrize(("line", "code"), LINES)
def test_every_command_exits_by_one_rule(
    world: World,
    capfd: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    line: str,
    code: Exit,
) -> None:
    monkeypatch.setenv("REDRIVE_CONFIG", str(world.config))
    assert run(world.spelt_out(line)) == code, capfd.readouterr()
    said = capfd.readouterr()
    if code not in (Exit.OK, Exit.TIMED_OUT):
        assert said.err or said.out
        assert "Traceback" not in said.err


def test_the_codes_are_those_of_the_page() -> None:
    page = (Path(__file__).parents[2] / "docs" / "commands.md").read_text()
    told = {int(row.split("|")[1]) for row in page.splitlines() if row[:3].strip("| ").isdecimal()}
    assert told >= set(TABLE)
