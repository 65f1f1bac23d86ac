"""config.toml in the repository is a good config that mentions every key with its default."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct
from msgspec.structs import fields

from redrive.config import load, show
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
