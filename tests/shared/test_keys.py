from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
import zmq
import zmq.auth

from redrive import keys
from redrive.errors import ConfigProblem, UsageProblem, WrongState


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """Under the umask that hides nothing."""
    before = os.umask(0)
    yield tmp_path / "keys"
    os.umask(before)


def test_the_first_key_brings_the_daemons_own(folder: Path) -> None:
    written = keys.new(folder, "anna", "operator")
    assert {str(path.relative_to(folder)) for path in written} == {
        "server.public",
        "server.secret",
        "operators/anna.public",
        "anna.secret",
    }
    assert len(keys.new(folder, "berta", "viewer")) == 2


def test_secrets_are_readable_by_their_owner_only(folder: Path) -> None:
    keys.new(folder, "anna", "operator")
    for path in folder.glob("*.secret"):
        assert path.stat().st_mode & 0o777 == 0o600
    assert folder.stat().st_mode & 0o777 == 0o700


def test_keys_are_listed_with_their_roles(folder: Path) -> None:
    keys.new(folder, "berta", "viewer")
    keys.new(folder, "anna", "operator")
    assert [(key.name, key.role) for key in keys.known(folder)] == [
        ("anna", "operator"),
        ("berta", "viewer"),
    ]
    assert keys.client_pair(folder, {"REDRIVE_KEY": str(folder / "anna.secret")}).public == (
        keys.known(folder)[0].public.encode()
    )


def test_a_removed_file_is_a_removed_right(folder: Path) -> None:
    keys.new(folder, "anna", "operator")
    (folder / "operators" / "anna.public").unlink()
    assert keys.known(folder) == []


def test_the_files_are_those_of_zmq(folder: Path) -> None:
    keys.new(folder, "anna", "operator")
    pair = keys.server_pair(folder)
    assert zmq.auth.load_certificate(folder / "server.secret") == (pair.public, pair.secret)
    assert zmq.curve_public(pair.secret) == pair.public == keys.server_public(folder)


@pytest.mark.parametrize("name", ["server", "", "../x", "a/b", "-x", "x" * 65])
def test_a_name_that_is_no_file_name_is_refused(folder: Path, name: str) -> None:
    with pytest.raises(UsageProblem, match="cannot be a key's name"):
        keys.new(folder, name, "viewer")
    assert not folder.exists()


def test_a_name_has_one_role_only(folder: Path) -> None:
    keys.new(folder, "anna", "viewer")
    (folder / "anna.secret").unlink()
    with pytest.raises(WrongState, match="there is a key named anna"):
        keys.new(folder, "anna", "operator")


def test_a_client_with_several_keys_says_which_is_its_own(folder: Path) -> None:
    keys.new(folder, "anna", "viewer")
    assert keys.client_pair(folder, {})
    keys.new(folder, "berta", "viewer")
    with pytest.raises(ConfigProblem, match=r"several client keys.*anna\.secret, berta\.secret"):
        keys.client_pair(folder, {})
    assert keys.client_pair(folder, {"REDRIVE_KEY": str(folder / "berta.secret")})


def test_a_client_without_a_key_learns_how_to_get_one(folder: Path) -> None:
    with pytest.raises(ConfigProblem, match="no client key") as caught:
        keys.client_pair(folder, {})
    assert "redrive keys new" in caught.value.hint


def test_a_secret_that_others_can_read_is_refused(folder: Path) -> None:
    keys.new(folder, "anna", "viewer")
    (folder / "anna.secret").chmod(0o640)
    with pytest.raises(ConfigProblem, match="can be read by others"):
        keys.client_pair(folder, {})


def test_a_key_that_others_can_write_is_refused(folder: Path) -> None:
    keys.new(folder, "anna", "viewer")
    (folder / "viewers" / "anna.public").chmod(0o666)
    with pytest.raises(ConfigProblem, match="can be written by others"):
        keys.known(folder)


def test_a_file_without_a_key_is_named(folder: Path) -> None:
    keys.new(folder, "anna", "viewer")
    (folder / "server.public").write_text("nothing")
    with pytest.raises(ConfigProblem, match=r"server\.public holds no key"):
        keys.server_public(folder)
