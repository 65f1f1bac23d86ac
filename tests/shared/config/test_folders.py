from __future__ import annotations

from pathlib import Path

import pytest

from redrive.config import (
    Config,
    find_config,
    load,
    node_name,
    runtime_dir,
    state_dir,
    store_url,
)
from redrive.config.sections import Daemon, Store
from redrive.errors import ConfigProblem


@pytest.fixture(autouse=True)
def _at_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.chdir(tmp_path)


def test_the_config_is_the_one_that_was_named() -> None:
    Path("a.toml").touch()
    Path("b.toml").touch()
    Path("config.toml").touch()
    assert find_config("a.toml", {"REDRIVE_CONFIG": "b.toml"}) == Path("a.toml")
    assert find_config(None, {"REDRIVE_CONFIG": "b.toml"}) == Path("b.toml")


def test_without_a_name_the_config_is_searched_here_then_at_home(tmp_path: Path) -> None:
    at_home = tmp_path / "home/.config/redrive/config.toml"
    at_home.parent.mkdir(parents=True)
    at_home.touch()
    assert find_config(None, {}) == at_home
    Path("config.toml").touch()
    assert find_config(None, {}) == Path("config.toml")


def test_a_config_that_was_named_and_is_not_there_is_not_replaced_by_another() -> None:
    Path("config.toml").touch()
    with pytest.raises(ConfigProblem, match=r"there is no config at a\.toml; name one"):
        find_config("a.toml", {})


def test_an_empty_name_is_no_name_of_a_config() -> None:
    Path("config.toml").touch()
    with pytest.raises(ConfigProblem, match="the name of the config is empty"):
        find_config("", {})
    assert find_config(None, {"REDRIVE_CONFIG": ""}) == Path("config.toml")


def test_a_config_that_cannot_be_looked_at_is_not_replaced_by_another() -> None:
    Path("config.toml").touch()
    unreadable = "a" * 300  # longer than a name can be
    assert find_config(unreadable, {}) == Path(unreadable)
    with pytest.raises(ConfigProblem, match="cannot be read: File name too long"):
        load(unreadable)


def test_when_no_config_is_found_the_error_says_where_it_was_looked_for(tmp_path: Path) -> None:
    with pytest.raises(ConfigProblem) as refused:
        find_config(None, {})
    assert refused.value.message == (
        f"there is no config at config.toml, {tmp_path}/home/.config/redrive/config.toml, "
        "/etc/redrive/config.toml"
    )


@pytest.mark.parametrize(
    ("environ", "folder"),
    [
        ({"STATE_DIRECTORY": "/var/lib/redrive:/other", "XDG_STATE_HOME": "/x"}, "/var/lib/redrive"),
        ({"XDG_STATE_HOME": "/x"}, "/x/redrive"),
        ({}, "{home}/.local/state/redrive"),
    ],
)  # fmt: skip
def test_the_state_lies_where_the_system_says(
    tmp_path: Path, environ: dict[str, str], folder: str
) -> None:
    assert str(state_dir(Config(), environ)) == folder.format(home=tmp_path / "home")


def test_the_sockets_lie_where_the_system_says_else_with_the_state() -> None:
    assert runtime_dir(Config(), {"RUNTIME_DIRECTORY": "/run/redrive"}) == Path("/run/redrive")
    assert runtime_dir(Config(), {"XDG_RUNTIME_DIR": "/run/7"}) == Path("/run/7/redrive")
    config = Config(daemon=Daemon(state_dir="/s"))
    assert runtime_dir(config, {}) == Path("/s/run")


def test_the_config_decides_before_the_environment() -> None:
    config = Config(daemon=Daemon(name="n", state_dir="/s", runtime_dir="/r"))
    environ = {"STATE_DIRECTORY": "/x", "RUNTIME_DIRECTORY": "/y"}
    assert state_dir(config, environ) == Path("/s")
    assert runtime_dir(config, environ) == Path("/r")
    assert node_name(config) == "n"
    assert node_name(Config())


@pytest.mark.parametrize(
    ("written", "url"),
    [
        ("sqlite:///redrive.db", "sqlite:////s/redrive.db"),
        ("sqlite:////data/redrive.db", "sqlite:////data/redrive.db"),
        ("postgresql+psycopg://host/db", "postgresql+psycopg://host/db"),
    ],
)
def test_a_relative_database_lies_with_the_state(written: str, url: str) -> None:
    config = Config(daemon=Daemon(state_dir="/s"), store=Store(url=written))
    assert store_url(config, {}) == url
