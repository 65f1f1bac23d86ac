"""config.toml in the repository is a good config that mentions every key with its default."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from msgspec import NODEFAULT, Struct
from msgspec.structs import fields

from redrive.config import load, show
from redrive.config.lines import Key, Lines
from redrive.config.sections import ManualRetry, Retry, Section, Tables
from redrive.config.written import tables
from redrive.policy import RetryPolicy, resolve

REFERENCE = Path(__file__).parents[3] / "config.toml"
SWITCHED_OFF = re.compile(r"^#(?=[\[\w])", re.MULTILINE)


class Mention(NamedTuple):
    """A key that stands in the file, and the section and value it was read into."""

    key: Key
    section: Struct
    name: str
    value: Any


@pytest.fixture(scope="module")
def text() -> str:
    return REFERENCE.read_text()


@pytest.fixture(scope="module")
def everything(text: str, tmp_path_factory: pytest.TempPathFactory) -> list[Mention]:
    """All that the file mentions once every line of it is switched on."""
    path = tmp_path_factory.mktemp("config") / "config.toml"
    path.write_text(SWITCHED_OFF.sub("", text))
    return list(mentions(tomllib.loads(path.read_text()), tables(load(path).config), ()))


def mentions(written: dict[str, Any], read: Struct | dict[str, Any], key: Key) -> Iterator[Mention]:
    for name, item in written.items():
        if isinstance(read, Struct):
            field = next(field for field in fields(read) if field.encode_name == name)
            value = getattr(read, field.name)
            yield Mention((*key, name), read, field.name, value)
        else:
            value = read.get(name)
        pairs = (
            enumerate(zip(item, value, strict=True))
            if isinstance(value, list)
            else [(None, (item, value))]
        )
        for place, (one, its) in pairs:
            if isinstance(its, Struct | dict) and isinstance(one, dict):
                yield from mentions(
                    one, its, (*key, name) if place is None else (*key, name, place)
                )


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


def test_a_setting_that_is_switched_off_shows_its_default(
    everything: list[Mention], text: str
) -> None:
    lines = Lines(SWITCHED_OFF.sub("", text))
    rows = text.splitlines()
    compared = 0
    for key, section, name, value in everything:
        default = default_of(section, name)
        if rows[lines[key] - 1].startswith(f"#{key[-1]} = ") and default not in (None, {}, ()):
            assert (key, value) == (key, default)
            compared += 1
    assert compared >= 40


def default_of(section: Struct, name: str) -> Any:
    """`None` when there is none, or nothing but an example could stand for it."""
    kind = RetryPolicy if isinstance(section, Retry) else type(section)
    field = next(field for field in fields(kind) if field.name == name)
    if field.default_factory is not NODEFAULT:
        return field.default_factory()
    return None if field.default is NODEFAULT else field.default


def test_the_default_policy_is_the_one_that_is_built_in() -> None:
    config = load(REFERENCE).config
    assert resolve(True, config.retry) == RetryPolicy()
    assert config.manual_retry == ManualRetry()


def test_what_show_prints_is_the_same_config_again(tmp_path: Path, text: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(SWITCHED_OFF.sub("", text).replace("${TOKEN:-none}", "none"))
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
