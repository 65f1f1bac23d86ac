"""Where a SQLite file lies: over a network its locks do not hold, and it comes to harm."""

from __future__ import annotations

import os
import re
from pathlib import Path

from redrive.errors import ConfigProblem

MOUNTS = Path("/proc/self/mountinfo")

_OVER_A_NETWORK = re.compile(
    r"nfs4?|cifs|smb3|smbfs|afs|ceph|glusterfs|fuse\.(sshfs|glusterfs|s3fs|rclone|ceph)"
)


def refuse_network(path: Path) -> None:
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # without /proc nobody can tell
        return
    kind = filesystem(path.resolve(), mounts)
    if _OVER_A_NETWORK.fullmatch(kind):
        raise ConfigProblem(
            f"the store {path} lies on a network filesystem ({kind}), where SQLite's locks fail",
            hint="put `[daemon] state_dir` on a local disk, or use PostgreSQL",
        )


def filesystem(path: Path, mounts: str) -> str:
    """The type of the filesystem of an absolute path, of the mount that is nearest to it."""
    nearest, kind = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        where = _unescaped(before.split()[4])
        if len(where) >= len(nearest) and os.path.commonpath([where, path]) == where:
            nearest, kind = where, after.split()[0]
    return kind


def _unescaped(name: str) -> str:
    """Blanks and the like are written in octal there."""
    return re.sub(r"\\([0-7]{3})", lambda digits: chr(int(digits[1], 8)), name)
