"""What workers of a daemon that died have printed, and who gets it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from redrived.processes.live_output import LiveOutput, recover


def printed_by(outputs: Path, worker: str, text: str) -> LiveOutput:
    """As it stands when the daemon and the worker are killed."""
    live = LiveOutput(str(outputs), worker)
    file = live.open()
    os.write(file, text.encode())
    os.close(file)
    return live


def files_in(outputs: Path) -> dict[str, str]:
    found = (path for path in outputs.rglob("*") if path.is_file())
    return {str(path.relative_to(outputs)): path.read_text() for path in found}


def test_what_was_printed_goes_to_the_attempt_that_had_begun(tmp_path: Path) -> None:
    for worker, job in (("fast.1", 7), ("fast.12", 1001)):
        printed_by(tmp_path, worker, f"by {job}").owned_by(job, 2)

    recover(str(tmp_path), "fast")

    assert files_in(tmp_path) == {"0/7.2.out": "by 7", "1/1001.2.out": "by 1001"}


def test_what_was_printed_after_an_attempt_is_nobodys(tmp_path: Path) -> None:
    live = printed_by(tmp_path, "fast.1", "too late")
    live.owned_by(7, 2)
    live.disowned_by(7, 2)

    recover(str(tmp_path), "fast")

    assert files_in(tmp_path) == {}


def test_the_end_of_one_attempt_takes_nothing_from_the_next(tmp_path: Path) -> None:
    live = printed_by(tmp_path, "fast.1", "by 8")
    live.owned_by(7, 2)
    live.owned_by(8, 1)
    live.disowned_by(7, 2)

    recover(str(tmp_path), "fast")

    assert files_in(tmp_path) == {"0/8.1.out": "by 8"}


def test_what_an_attempt_has_been_given_already_stays(tmp_path: Path) -> None:
    printed_by(tmp_path, "fast.1", "a straggler").owned_by(7, 2)
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "7.2.out").write_text("its own")

    recover(str(tmp_path), "fast")

    assert files_in(tmp_path) == {"0/7.2.out": "its own"}


def test_a_pool_leaves_alone_what_is_of_another_called_after_it(tmp_path: Path) -> None:
    printed_by(tmp_path, "fast.large.1", "by 7").owned_by(7, 2)

    recover(str(tmp_path), "fast")

    assert {path for path in files_in(tmp_path) if path.startswith("live/")} == {
        "live/fast.large.1",
        "live/fast.large.1.owner",
    }


@pytest.mark.parametrize("owner", [b"", b"7", b"\xff" * 17])
def test_an_owner_that_cannot_be_read_is_nobody(tmp_path: Path, owner: bytes) -> None:
    printed_by(tmp_path, "fast.1", "whose?")
    (tmp_path / "live" / "fast.1.owner").write_bytes(owner)

    recover(str(tmp_path), "fast")

    assert files_in(tmp_path) == {}
