"""Reading two streams as one: the bytes of an attempt in the order they were written.

How long both streams were, sampled now and then while they grew, gives the order: within a
stream it is exact, between the streams it is that of the samples.
"""

from __future__ import annotations

import os
from array import array
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from msgspec import Struct

StreamName = Literal["out", "err"]
Files = tuple[int | None, int | None]  # descriptors of stdout and stderr, where there are any

STREAMS: tuple[StreamName, StreamName] = ("out", "err")


class Chunk(Struct, frozen=True):
    stream: StreamName
    data: bytes


class Page(Struct, frozen=True, kw_only=True):
    """A piece of an attempt's output; read on at `next_offset`."""

    chunks: list[Chunk]
    next_offset: int
    size: int  # of the whole
    is_live: bool


class Marks:
    """How long stdout and stderr were at some moments, oldest first."""

    def __init__(self) -> None:
        self._lengths = array("Q")

    @classmethod
    def load(cls, path: str) -> Marks:
        """None at all when only one stream was used or the daemon died: stdout comes first."""
        marks = cls()
        try:
            marks._lengths.frombytes(Path(path).read_bytes())
        except (OSError, ValueError):
            pass
        return marks

    def save(self, path: str, flags: int) -> None:
        with open(os.open(path, flags | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            self._lengths.tofile(file)

    def add(self, out: int, err: int) -> None:
        now = array("Q", (out, err))
        last = self._lengths[-2:]
        before = self._lengths[-4:-2] or (0, 0)
        if last == now:
            return
        # While only one stream grows, its newest mark says it all.
        if last and any(before[i] == last[i] == now[i] for i in (0, 1)):
            del self._lengths[-2:]
        self._lengths.extend(now)

    def __iter__(self) -> Iterator[tuple[int, int]]:
        return zip(self._lengths[::2], self._lengths[1::2], strict=False)


def read_page(
    files: Files,
    marks: Marks,
    offset: int,
    limit: int,
    *,
    is_live: bool,
    sizes: tuple[int, int] | None = None,
) -> Page:
    """As much of what there is, or was when it had those sizes, as the limit allows."""
    out, err = (0 if file is None else os.fstat(file).st_size for file in files)
    chunks: list[Chunk] = []
    position = 0  # where a segment begins in the whole
    next_offset = offset
    for stream, start, end in _segments(sizes or (out, err), marks):
        skip = max(0, next_offset - position)
        wanted = min(end - start - skip, limit)
        file = files[stream]
        if wanted > 0 and file is not None:
            data = os.pread(file, wanted, start + skip)
            chunks.append(Chunk(STREAMS[stream], data))
            next_offset += len(data)
            limit -= len(data)
        position += end - start
    return Page(chunks=chunks, next_offset=next_offset, size=position, is_live=is_live)


def _segments(sizes: tuple[int, int], marks: Marks) -> Iterator[tuple[int, int, int]]:
    """Stream, start, end: stdout before stderr between any two marks, and after the last."""
    reached = [0, 0]
    for until in (*marks, sizes):
        for stream in (0, 1):
            end = min(until[stream], sizes[stream])
            if end > reached[stream]:
                yield stream, reached[stream], end
                reached[stream] = end
