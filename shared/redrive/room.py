"""Whether there is room on the disk of `state_dir`, and where it is used up."""

from __future__ import annotations

import os
from collections.abc import Iterator

from redrive.protocol.rows import Check

LOW = 512 * 1024 * 1024  # bytes


def room_check(folder: str, free: int, total: int, *, is_ours: bool = True) -> Check:
    """What uses a folder up is told of one that is ours; any other may be all of the disk."""
    text = f"{_spelled(free)} of {_spelled(total)} are free in {folder}"
    hint = "make room, or shorten [store.keep]; without space no new job is taken"
    if free < LOW and is_ours:
        text += f"; {_used_up_by(folder)}"
        hint += ". A task's `limits.output` is what one attempt may write"
    return Check(name="disk", ok=free >= LOW, text=text, hint=hint)


def _used_up_by(folder: str) -> str:
    sizes: dict[str, int] = {}
    largest = (0, "")
    for path, size in _files(folder):
        first, *_ = os.path.relpath(path, folder).split(os.sep)
        sizes[first] = sizes.get(first, 0) + size
        largest = max(largest, (size, path))
    if not sizes:
        return "nothing of it is used by what is in there"
    size, name = max((size, name) for name, size in sizes.items())
    text = f"of what is in there {os.path.join(folder, name)} has the most, {_spelled(size)}"
    own, path = largest
    return text if path == os.path.join(folder, name) else f"{text}, {_spelled(own)} in {path}"


def _files(folder: str) -> Iterator[tuple[str, int]]:
    """Every file that may be looked at, with what it takes on the disk."""
    for place, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(place, name)
            try:
                yield path, os.lstat(path).st_blocks * 512
            except OSError:
                pass  # it has gone meanwhile


def _spelled(size: int) -> str:
    return f"{size / 1e9:.1f} GB" if size >= 1e8 else f"{size / 1e6:.1f} MB"
