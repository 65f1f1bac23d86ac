"""A config is refused whole, in bounds, to those it concerns, and without telling secrets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redrive.config import ConfigRejected, load, load_client
from support.refused import problems


def test_one_reading_names_every_mistake_in_the_order_of_the_file(tmp_path: Path) -> None:
    text = """
[daemon]
concurency = 4
shutdown_grace = "soon"

[tasks.parse]
command = ["x"]
queue = "blk"
retry = { delays = ["1s"], backoff = {}, jitter = 7 }

[queues.bulk]
rate = "fast"

[schedules.nightly]
task = "prase"
cron = "0 3 * * *"
timezone = "Mars"
"""
    found = problems(tmp_path / "config.toml", text)
    assert [(problem.line, problem.key) for problem in found] == [
        (3, "daemon.concurency"),
        (4, "daemon.shutdown_grace"),
        (8, "tasks.parse.queue"),
        (9, "tasks.parse.retry.jitter"),
        (9, "tasks.parse.retry.delays"),
        (12, "queues.bulk.rate"),
        (15, "schedules.nightly.task"),
        (17, "schedules.nightly.timezone"),
    ]


def test_one_mistake_is_told_once(tmp_path: Path) -> None:
    text = '[tasks.t]\ncomand = ["x"]\n[tasks]\nu = 3\n[schedules.s]\ntask = "u"\nevery = "1h"'
    found = problems(tmp_path / "config.toml", text)
    assert [problem.key for problem in found] == ["tasks.t.comand", "tasks.u"]


def test_a_config_that_is_all_wrong_is_not_read_to_its_end(tmp_path: Path) -> None:
    text = "\n".join(f"key{number} = 1" for number in range(50_000))
    assert len(problems(tmp_path / "config.toml", text)) == 100


def test_a_file_larger_than_a_mebibyte_is_refused(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path / "config.toml", "#" * 10_000_000)
    assert problem.text == "the file is larger than 1 MiB, expected a config"


def test_a_file_that_is_not_utf_8_is_refused_with_the_line(tmp_path: Path) -> None:
    (problem,) = problems(tmp_path / "config.toml", b"[daemon]\nname = '\xff'")
    assert (problem.line, problem.text) == (2, "byte 0xff is not UTF-8, expected UTF-8 text")


def test_a_file_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match="cannot be read: No such file or directory"):
        load(tmp_path / "none.toml")
    with pytest.raises(ConfigRejected, match="cannot be read: Is a directory"):
        load(tmp_path)
    with pytest.raises(ConfigRejected, match="cannot be read: embedded null byte"):
        load("\0")


def test_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(ConfigRejected, match="cannot be read: it is not a regular file"):
        load(tmp_path / "pipe")


def test_a_file_that_everybody_may_write_is_refused_by_the_daemon_only(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("")
    path.chmod(0o666)
    with pytest.raises(ConfigRejected, match=r"everybody may write to it \(mode 0666\)"):
        load(path)
    load_client(path)


def test_a_mistake_elsewhere_does_not_keep_clients_from_the_daemon(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[console]\ncolour = "red"\n[tasks.t]\nqueue = "${NOPE}"\n[nonsense]')
    assert load_client(path, {}).config.console.colour == "red"


def test_a_mistake_in_their_own_tables_stops_clients_too(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[bus]\nquery = "tcp://host:1"\n[console]\ncolor = "red"')
    with pytest.raises(ConfigRejected) as refused:
        load_client(path)
    assert [problem.key for problem in refused.value.problems] == ["bus.query", "console.color"]


def test_a_password_is_not_repeated_in_a_refusal(tmp_path: Path) -> None:
    text = '[store]\nurl = "postgres://me:s3cret!@host/db"\n[tasks.t]\nqueue = "${TOKEN}"'
    said = "\n".join(str(problem) for problem in problems(tmp_path / "config.toml", text))
    assert "s3cret" not in said
    assert "hunter2" not in said
