"""Which filesystem a path is on, as the kernel's list of mounts has it."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive import filesystems

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
def test_the_nearest_mount_tells_the_filesystem(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str, kind: str
) -> None:
    mounts = tmp_path / "mountinfo"
    mounts.write_text(MOUNTS)
    monkeypatch.setattr(filesystems, "MOUNTS", mounts)
    assert filesystems.kind_of(Path(path)) == kind
