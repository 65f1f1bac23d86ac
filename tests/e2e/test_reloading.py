"""A config with a mistake, whatever it is, changes nothing in a daemon that runs (F41)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from redrive.errors import Exit
from redrive.lifecycle import JobState
from redrive.models import Event
from support.daemon import BASE
from support.trial import Trial, trial

TASKS = """
[tasks.say]
command = ["echo", "said"]
"""
LINES = (BASE + TASKS).count("\n")

# What is appended to a good config, and the line on which the mistake is found, counted from there.
MISTAKES = {
    "an open text": ('a = "', 1),
    "an open list": ("[tasks.x]\ncommand = [\n", 3),
    "an open header": ("[tasks.x\n", 1),
    "a key without a value": ("[tasks.x]\ncommand =\n", 2),
    "words that are no TOML": ("this is no config\n", 1),
    "a key written twice": ('[tasks.x]\ncommand = "a"\ncommand = "b"\n', 3),
    "a table written twice": ("[tasks.say]\n", 1),
    "an escape that does not exist": ('[tasks.x]\ncommand = "\\d"\n', 2),
    "a date that does not exist": ("[schedules.x]\nat = 2026-02-30T00:00:00Z\n", 2),
    "a number with too many digits": (f"[queues.x]\npriority = {'9' * 5000}\n", 2),
    "levels without end": ("[tasks.x]\nargs = " + "[" * 100 + "\n", 2),
    "a table that does not exist": ("[taks.x]\n", 1),
    "a key that does not exist": ('[tasks.x]\ncommand = "a"\nretries = 3\n', 3),
    "a value of another type": ("[tasks.x]\ncommand = 5\n", 2),
    "a number out of its bounds": ("[queues.x]\nconcurrency = 0\n", 2),
    "a number that is none": ("[retry.x]\njitter = nan\n", 2),
    "a duration nobody can read": ('[tasks.x]\ncommand = "a"\ntimeout = "soon"\n', 3),
    "a name that refers to nothing": ('[tasks.x]\ncommand = "a"\nqueue = "bluk"\n', 3),
    "two ways to do one thing": ('[tasks.x]\ncommand = "a"\npython = "a:b"\n', 1),
    "a condition that does not compile": ('[retry.x]\nretry_when = "a =="\n', 2),
    "a pattern that does not compile": (
        '[[errors]]\nmatch = "("\ntype = "x"\ncategory = "transient"\n',
        2,
    ),
    "a table in place of a list": (
        "[pipelines.x.steps]\n",
        1,
    ),
    "a circle of steps": (
        '[pipelines.x]\nsteps = [{ name = "a", task = "say", needs = ["a"] }]\n',
        2,
    ),
    "a cron line nobody can read": ('[schedules.x]\ntask = "say"\ncron = "61 * * * *"\n', 3),
    "a variable that is not set": ('[store]\nurl = "${NOT_SET_ANYWHERE}"\n', 2),
    "what only a restart can change": ('[store]\nurl = "sqlite:///other.db"\n', None),
}


@pytest.fixture(scope="module")
def daemon(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trial]:
    with trial(tmp_path_factory.mktemp("reload"), TASKS) as made:
        made.start()
        yield made


@pytest.mark.parametrize("kind", MISTAKES)
def test_f41_a_reload_of_a_bad_config_changes_nothing_and_names_the_line(
    daemon: Trial, kind: str
) -> None:
    text, line = MISTAKES[kind]
    good = daemon.config.read_text()
    before = len(rejections(daemon))
    daemon.config.write_text(good + text)
    try:
        done = daemon.run("reload")
    finally:
        daemon.config.write_text(good)

    assert done.returncode == Exit.CONFIG, done
    assert (f"config.toml:{LINES + line}: " if line else "store.url cannot change") in done.stderr
    assert done.stdout == ""
    assert len(rejections(daemon)) == before + 1  # it was the daemon that said so
    assert daemon.until_ended(daemon.enqueue("say")).state is JobState.DONE


def put_folder_in_its_place(path: Path) -> None:
    path.unlink()
    path.mkdir()


SPOILERS: dict[str, Callable[[Path], object]] = {
    "bytes that are no text": lambda path: path.write_bytes(path.read_bytes() + b"# \xff\n"),
    "more than a config can be": lambda path: path.write_bytes(path.read_bytes() + b"#" * 2**20),
    "everybody may write to it": lambda path: path.chmod(0o666),
    "a folder in its place": put_folder_in_its_place,
    "it is gone": Path.unlink,
}


@pytest.mark.parametrize("kind", SPOILERS)
def test_f41_a_file_that_cannot_be_read_changes_nothing(
    daemon: Trial, kind: str, tmp_path: Path
) -> None:
    """Asked with another config, that says where the daemon is and nothing else."""
    where = tmp_path / "where.toml"
    where.write_text(f'[daemon]\nruntime_dir = "{daemon.folder}/run"\n')
    good = daemon.config.read_bytes()
    before = len(rejections(daemon))
    SPOILERS[kind](daemon.config)
    try:
        done = daemon.run("reload", "--config", str(where))
    finally:
        if daemon.config.is_dir():
            daemon.config.rmdir()
        daemon.config.write_bytes(good)
        daemon.config.chmod(0o644)

    assert done.returncode == Exit.CONFIG, done
    assert "config.toml" in done.stderr
    assert len(rejections(daemon)) == before + 1
    assert daemon.until_ended(daemon.enqueue("say")).state is JobState.DONE


def test_whoever_spoils_the_file_can_still_look_and_kill(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + '[tasks.sleep]\ncommand = ["sleep", "600"]\n') as daemon:
        daemon.start()
        id = daemon.enqueue("sleep")
        daemon.until_told(id, "action_started")
        daemon.config.write_text(daemon.config.read_text() + "[tasks.new\n")

        for words in (("status",), ("jobs",), ("why", str(id)), ("kill", str(id))):
            done = daemon.run(*words)
            assert done.returncode == Exit.OK, done
            assert "not TOML" in done.stderr
            assert "redrive config check" in done.stderr
        assert daemon.until_ended(id).state is JobState.CANCELLED
        assert daemon.run("config", "check").returncode == Exit.CONFIG
        assert daemon.run("doctor").returncode == Exit.FAILED


LANE = """
[queues.bulk]
concurrency = 1
operations = ["request", "download"]
[tasks.request]
command = "echo request >> order"
queue = "bulk"
operation = "request"
[tasks.download]
command = "echo download >> order"
queue = "bulk"
operation = "download"
[tasks.late]
command = "test -e order && echo late >> order"
queue = "bulk"
operation = "download"
[pipelines.both]
steps = [{ name = "first", task = "request" }, { name = "second", task = "download" }]
"""


@pytest.mark.parametrize("is_restarted", [False, True], ids=["reload", "restart"])
def test_another_order_of_operations_holds_for_all_that_is_yet_to_run(
    tmp_path: Path, is_restarted: bool
) -> None:
    with trial(tmp_path, LANE) as daemon:
        daemon.start()
        dead = daemon.enqueue("late")
        daemon.until_ended(dead)
        daemon.run("pause", "bulk", check=True)
        runs = [daemon.ask.start("both").last_id for _ in range(2)]
        daemon.enqueue("download")

        daemon.config.write_text(daemon.config.read_text().replace(
            '["request", "download"]', '["download", "request"]'
        ))  # fmt: skip
        if is_restarted:
            daemon.hang_up()
            daemon.stop()
            daemon.start()
        else:
            daemon.run("reload", check=True)
        daemon.run("requeue", str(dead), "--force", check=True)
        daemon.run("resume", "bulk", check=True)
        daemon.run("wait", str(dead), *runs, check=True)

        order = (tmp_path / "order").read_text().split()
        assert order == ["download", "late", "request", "download", "request", "download"]


def rejections(daemon: Trial) -> list[Event]:
    return [event for event in daemon.events() if event.type == "config_rejected"]
