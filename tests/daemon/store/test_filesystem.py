"""A SQLite store over a network is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive import filesystems
from redrive.errors import ConfigProblem
from redrived.store.store import Store
from support.clock import FakeClock


async def test_a_store_on_a_network_filesystem_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / {tmp_path} rw - nfs4 host:/ rw\n")
    monkeypatch.setattr(filesystems, "MOUNTS", mounts)
    store = Store(f"sqlite:///{tmp_path}/redrive.db", clock, "n1")

    with pytest.raises(ConfigProblem, match=r"network filesystem \(nfs4\)") as caught:
        await store.open()

    assert "PostgreSQL" in caught.value.hint
    await store.close()


async def test_where_mounts_cannot_be_read_a_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr(filesystems, "MOUNTS", tmp_path / "nothing")
    store = Store(f"sqlite:///{tmp_path}/redrive.db", clock, "n1")
    await store.open()
    await store.close()
