"""A SQLite store over a network is refused before anything is written."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.errors import ConfigProblem
from redrived.store import filesystem
from redrived.store.store import Store
from support.clock import FakeClock

MOUNTS = r"""
22 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw
30 22 0:40 / /srv rw - nfs4 host:/srv rw,vers=4.2
31 30 8:2 / /srv/local rw - xfs /dev/sdb rw
32 22 0:41 / /mnt/two\040words rw - cifs //host/share rw
33 22 0:42 / /home rw master:3 propagate_from:2 - tmpfs tmpfs rw
34 33 0:43 / /home rw - fuse.sshfs host: rw
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/var/lib/redrive/redrive.db", "ext4"),
        ("/srv/redrive.db", "nfs4"),
        ("/srv/local/redrive.db", "xfs"),
        ("/srv/localhost/redrive.db", "nfs4"),
        ("/mnt/two words/redrive.db", "cifs"),
        ("/home/redrive.db", "fuse.sshfs"),
    ],
)
def test_the_nearest_mount_tells_the_filesystem(path: str, kind: str) -> None:
    assert filesystem.filesystem(Path(path), MOUNTS) == kind


async def test_a_store_on_a_network_filesystem_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(f"1 1 0:1 / {tmp_path} rw - nfs4 host:/ rw\n")
    monkeypatch.setattr(filesystem, "MOUNTS", mounts)
    store = Store(f"sqlite:///{tmp_path}/redrive.db", clock, "n1")

    with pytest.raises(ConfigProblem, match=r"network filesystem \(nfs4\)") as caught:
        await store.open()

    assert "PostgreSQL" in caught.value.hint
    await store.close()


async def test_where_mounts_cannot_be_read_a_store_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, clock: FakeClock
) -> None:
    monkeypatch.setattr(filesystem, "MOUNTS", tmp_path / "nothing")
    store = Store(f"sqlite:///{tmp_path}/redrive.db", clock, "n1")
    await store.open()
    await store.close()
