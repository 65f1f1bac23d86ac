"""config.toml in the repository is a good config that mentions every key with its default."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest
from msgspec import Struct
from msgspec.structs import fields

from redrive.config import load, show, show_as_json
from redrive.config.sections import ManualRetry, Section, Tables
from redrive.policy import RetryPolicy, resolve
from support.reference_config import REFERENCE, Mention, default_of, mentions, switched_on


@pytest.fixture(scope="module")
def text() -> str:
    return REFERENCE.read_text()


@pytest.fixture(scope="module")
def everything(tmp_path_factory: pytest.TempPathFactory) -> list[Mention]:
    return mentions(tmp_path_factory.mktemp("config"))


def sections_of(kind: type[Struct]) -> Iterator[type[Struct]]:
    return (each for each in kind.__subclasses__() if not issubclass(each, Tables))


def test_it_runs_as_it_is_with_small_tasks_for_any_machine() -> None:
    loaded = load(REFERENCE)
    assert list(loaded.config.tasks) == ["hello", "flaky", "sleep", "fail", "beat"]
    assert loaded.config.store.url == "sqlite:///redrive.db"
    assert not loaded.masked


def test_every_key_is_mentioned(everything: list[Mention], text: str) -> None:
    mentioned = {(type(mention.section), mention.name) for mention in everything}
    missing = [
        f"{section.__name__}.{field.encode_name}"
        for section in sections_of(Section)
        if section.__name__ != "ClientTables"
        for field in fields(section)
        if (section, field.name) not in mentioned
    ]
    assert missing == []
    for field in fields(Tables):
        assert re.search(rf"^#?\[+{field.encode_name}\b", text, re.MULTILINE), field.name


def test_a_setting_that_is_switched_off_shows_its_default(everything: list[Mention]) -> None:
    compared = 0
    for key, section, name, value, row in everything:
        default = default_of(type(section), name)
        if row.startswith(f"#{key[-1]} = ") and default not in (None, {}, ()):
            assert (key, value) == (key, default)
            compared += 1
    assert compared >= 40


def test_the_default_policy_is_the_one_that_is_built_in() -> None:
    config = load(REFERENCE).config
    assert resolve(True, config.retry) == RetryPolicy()
    assert config.manual_retry == ManualRetry()


def test_what_show_prints_is_the_same_config_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(switched_on(text).replace("${TOKEN:-none}", "none"))
    first = load(path)
    path.write_text(show(first))
    again = load(path)
    assert again.config.tasks == first.config.tasks
    assert show(again) == show(first)


def test_show_fills_in_the_defaults() -> None:
    shown = show(load(REFERENCE))
    assert "[retry.default]\nmax_attempts = 3" in shown
    assert 'unknown = "retry"' in shown
    assert '[store.keep]\ndone = "7d"\ncancelled = "30d"\ndead = "forever"' in shown


@pytest.mark.parametrize("written", ["2026-12-01T08:00:00", "2026-12-01T09:00:00+02:00"])
def test_as_json_the_time_of_a_schedule_is_told_in_utc(tmp_path: Path, written: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        f"""[tasks.t]
command = ["true"]
[schedules.once]
task = "t"
at = {written}
timezone = "Europe/Berlin"
"""
    )
    once = show_as_json(load(path))["schedules"]["once"]
    assert once["at"] == "2026-12-01T07:00:00.000000Z"


def test_as_json_durations_are_seconds_and_sizes_bytes(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(
        """[tasks.t]
command = ["true"]
timeout = "90s"
retry = { delays = ["1m", "1h"], retry_for = "2d" }
heartbeat = { from = "output", stalled_after = "2m" }
limits = { memory = "1G" }
rate = "100/min"
[schedules.s]
task = "t"
at = 2026-12-01T01:00:00+01:00
args = { late = 12.5, day = "7d", none = [] }
"""
    )
    shown = show_as_json(load(path))
    assert json.loads(json.dumps(shown)) == shown
    assert shown["daemon"]["shutdown_grace"] == 30
    assert shown["store"]["keep"]["done"] == 7 * 86400
    assert shown["store"]["keep"]["dead"] is None
    assert shown["retry"]["default"]["backoff"] == {"first": 5, "factor": 2, "cap": 600}
    task = shown["tasks"]["t"]
    assert task["timeout"] == 90
    assert task["retry"]["delays"] == [60, 3600]
    assert task["retry"]["retry_for"] == 2 * 86400
    assert task["heartbeat"] == {"from": "output", "stalled_after": 120}
    assert task["limits"] == {"memory": 1 << 30, "output": 64 << 20}
    assert task["rate"] == "100/min"
    schedule = shown["schedules"]["s"]
    assert schedule["at"] == "2026-12-01T00:00:00.000000Z"
    assert schedule["args"] == {"late": 12.5, "day": "7d", "none": []}


def test_as_json_the_same_keys_are_shown(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(switched_on(text).replace("${TOKEN:-none}", "none"))
    loaded = load(path)
    assert places(show_as_json(loaded)) == places(tomllib.loads(show(loaded)))


def places(value: Any) -> set[str]:
    """Where something is said; TOML has no header for an empty table."""
    match value:
        case {**entries}:
            below = cast(dict[str, Any], entries).items()
        case [*items]:
            below = {str(at): item for at, item in enumerate(items)}.items()
        case _:
            return {""}
    return {f".{name}{place}" for name, inner in below for place in places(inner)}
