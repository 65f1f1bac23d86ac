"""What a config without mistakes becomes."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from redrive.config import Config, load
from redrive.config.sections import Backoff, ManualRetry, Pool, Queue, Retry


def config(tmp_path: Path, text: str, **environ: str) -> Config:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load(path, environ).config


def test_an_empty_file_is_all_defaults(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    assert config(tmp_path, "") == Config(folder=str(tmp_path), path=str(path))


def test_the_default_queue_and_pool_exist_without_being_written(tmp_path: Path) -> None:
    read = config(tmp_path, "[queues.bulk]\npriority = 5\n[pools.default]\nprocesses = 2")
    assert read.queues == {"default": Queue(), "bulk": Queue(priority=5)}
    assert read.pools == {"default": Pool(processes=2)}


def test_manual_retries_are_no_policy(tmp_path: Path) -> None:
    read = config(tmp_path, '[retry.manual]\ncooldown = "5m"\n[retry.slow]\ndelays = ["1m", 2]')
    assert read.manual_retry == ManualRetry(cooldown=300)
    assert read.retry == {"slow": Retry(delays=[60, 2])}


@pytest.mark.parametrize(
    ("written", "dropped_within"),
    [
        ('{ stalled_after = "2s" }', 0.5),
        ('{ from = "job", stalled_after = "1h" }', 30),
        ('{ every = "1s", stalled_after = "1m" }', 1),
    ],
)
def test_beats_are_dropped_for_as_long_as_a_short_silence_allows(
    tmp_path: Path, written: str, dropped_within: float
) -> None:
    task = config(tmp_path, f'[tasks.t]\npython = "a:b"\nheartbeat = {written}').tasks["t"]
    assert task.heartbeat is not None
    assert task.heartbeat.dropped_within == dropped_within


def test_paths_start_at_the_file_and_at_home(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/somebody")
    read = config(
        tmp_path,
        '[daemon]\nstate_dir = "./state/../s"\nruntime_dir = "/run/x"\n'
        '[pools.default]\npath = [".", "~/lib"]',
    )
    assert read.daemon.state_dir == str(tmp_path / "s")
    assert read.daemon.runtime_dir == "/run/x"
    assert read.pools["default"].path == [str(tmp_path), "/home/somebody/lib"]


@pytest.mark.parametrize("written", ["false", '"forever"'])
def test_what_is_kept_forever_has_no_end(tmp_path: Path, written: str) -> None:
    read = config(tmp_path, f'[store]\nkeep = {{ done = {written}, dead = "90d" }}')
    assert read.store.keep.done is None
    assert read.store.keep.dead == 90 * 86_400


@pytest.mark.parametrize(
    ("written", "retry"),
    [
        ("true", True),
        ("false", False),
        ("5", 5),
        ('"default"', "default"),
        ('{ backoff = { first = "1s" } }', Retry(backoff=Backoff(first=1))),
    ],
)
def test_a_retry_may_be_written_in_every_form(tmp_path: Path, written: str, retry: object) -> None:
    read = config(tmp_path, f'[tasks.t]\ncommand = ["x"]\nretry = {written}')
    assert read.tasks["t"].retry == retry


def test_a_step_may_use_what_is_written_after_it(tmp_path: Path) -> None:
    read = config(
        tmp_path,
        """
        [[pipelines.p.steps]]
        name = "last"
        task = "t"
        needs = ["first"]
        [[pipelines.p.steps]]
        name = "first"
        task = "t"
        needs = []
        [schedules.s]
        pipeline = "p"
        at = 2026-12-01T00:00:00Z
        [tasks.t]
        command = ["x"]
        """,
    )
    assert [step.name for step in read.pipelines["p"].steps] == ["last", "first"]
    assert read.schedules["s"].at == datetime(2026, 12, 1, tzinfo=UTC)


def test_the_marks_that_windows_leaves_in_a_file_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_bytes(b"\xef\xbb\xbf[daemon]\r\nconcurrency = 3\r\n")
    assert load(path).config.daemon.concurrency == 3
