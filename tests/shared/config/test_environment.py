"""Values from the environment: filled in, typed where a number was asked for, never shown."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.config import ConfigRejected, Loaded, load, show, show_as_json


def loaded(tmp_path: Path, text: str, **environ: str) -> Loaded:
    path = tmp_path / "config.toml"
    path.write_text(text)
    return load(path, environ)


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("${NODE}", "n1"),
        ("a-${NODE}-${NODE}", "a-n1-n1"),
        ("${NOPE:-main}", "main"),
        ("${EMPTY:-main}", "main"),
        ("${NODE:-main}", "n1"),
    ],
)
def test_a_variable_is_filled_in(tmp_path: Path, written: str, name: str) -> None:
    read = loaded(tmp_path, f'[daemon]\nname = "{written}"', NODE="n1", EMPTY="")
    assert read.config.daemon.name == name


def test_a_dollar_stands_for_itself_unless_a_brace_follows(tmp_path: Path) -> None:
    command = "echo $HOME $$ $${HOME} $(date) ^a$"
    read = loaded(tmp_path, f'[tasks.t]\ncommand = "{command}"')
    assert read.config.tasks["t"].command == "echo $HOME $$ ${HOME} $(date) ^a$"
    assert not read.masked


def test_a_variable_may_hold_a_number_where_one_is_expected(tmp_path: Path) -> None:
    text = '[daemon]\nconcurrency = "${N}"\nshutdown_grace = "${N}"\nname = "${N}"'
    daemon = loaded(tmp_path, text, N="16").config.daemon
    assert (daemon.concurrency, daemon.shutdown_grace, daemon.name) == (16, 16.0, "16")


def test_a_variable_that_is_not_utf_8_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigRejected, match="the variable A is not UTF-8"):
        loaded(tmp_path, '[console]\nenvironment = "${A}"', A="\udcff")


def test_what_came_from_the_environment_is_shown_nowhere(tmp_path: Path) -> None:
    read = loaded(
        tmp_path,
        '[store]\nurl = "postgresql+psycopg://me:${PASSWORD}@host/db"\n'
        '[tasks.t]\ncommand = ["x", "${TOKEN}"]\ntimeout = "${TIME}"\n'
        'env = { TOKEN = "Bearer ${TOKEN}" }',
        PASSWORD="s3cr%21et",
        TOKEN="hunter2",
        TIME="77s",
    )
    shown = show(read)
    assert 'url = "postgresql+psycopg://me:[redacted]@host/db"' in shown
    assert 'command = ["x", "[redacted]"]' in shown
    assert 'timeout = "[redacted]"' in shown
    assert 'env = { TOKEN = "Bearer [redacted]" }' in shown
    task = show_as_json(read)["tasks"]["t"]
    assert task["command"] == ["x", "[redacted]"]
    assert task["timeout"] == "[redacted]"
    assert task["env"] == {"TOKEN": "Bearer [redacted]"}
    assert (
        read.config.redact("failed with hunter2 and s3cr!et")
        == "failed with [redacted] and [redacted]"
    )


def test_a_password_in_any_url_is_redacted(tmp_path: Path) -> None:
    read = loaded(tmp_path, '[store]\nurl = "postgresql+psycopg://me:p%40ss@host/db"')
    assert (
        read.config.redact("no host in mysql://you:other@x")
        == "no host in mysql://you:[redacted]@x"
    )
    assert read.config.redact("p@ss was refused") == "[redacted] was refused"
    assert "p%40ss" not in show(read)


@pytest.mark.parametrize(
    ("url", "redacted"),
    [
        ("postgresql+psycopg://me:a/b@host/db", "postgresql+psycopg://me:[redacted]@host/db"),
        ("postgresql+psycopg://me:a@b@host/db", "postgresql+psycopg://me:[redacted]@host/db"),
        ("postgresql+psycopg:///db?password=a&x=1", "postgresql+psycopg:///db?password=[redacted]&x=1"),
        ("postgresql+psycopg://me@host:5432/db", "postgresql+psycopg://me@host:5432/db"),
    ],
)  # fmt: skip
def test_a_password_is_found_wherever_a_url_may_have_one(
    tmp_path: Path, url: str, redacted: str
) -> None:
    assert f'url = "{redacted}"' in show(loaded(tmp_path, f'[store]\nurl = "{url}"'))


def test_a_text_too_short_for_a_secret_does_not_riddle_other_texts(tmp_path: Path) -> None:
    read = loaded(tmp_path, '[console]\nenvironment = "${E}"', E="e")
    assert read.config.redact("the message") == "the message"
    assert 'environment = "[redacted]"' in show(read)
