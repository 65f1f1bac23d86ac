"""On which kind of filesystem something lies: over a network, locks and sockets do not hold."""

from __future__ import annotations

import os
import re
from pathlib import Path

MOUNTS = Path("/proc/self/mountinfo")

_OVER_A_NETWORK = re.compile(
    r"nfs4?|cifs|smb3|smbfs|afs|ceph|glusterfs|fuse\.(sshfs|glusterfs|s3fs|rclone|ceph)"
)


def kind_of(path: Path) -> str:
    """Its type, by the mount that is nearest to the path; "" where nobody can tell."""
    try:
        mounts = MOUNTS.read_text(encoding="utf-8", errors="surrogateescape")
    except OSError:  # there is no /proc
        return ""
    place = os.path.realpath(path)
    nearest, kind = "", ""
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        where = _unescaped(before.split()[4])
        if len(where) >= len(nearest) and os.path.commonpath([where, place]) == where:
            nearest, kind = where, after.split()[0]
    return kind


def is_over_a_network(kind: str) -> bool:
    return _OVER_A_NETWORK.fullmatch(kind) is not None


def _unescaped(name: str) -> str:
    """Blanks and the like are written in octal there."""
    return re.sub(r"\\([0-7]{3})", lambda digits: chr(int(digits[1], 8)), name)
