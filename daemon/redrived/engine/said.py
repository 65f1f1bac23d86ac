"""What running attempts say of themselves, no larger than every list of jobs can carry.

It comes from the application: a worker or a command may say anything, of any size. Here is
where it comes in, so whatever is beyond the limits in `redrive.job` is dropped here.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from redrive.job import has_room, shortened
from redrive.models import Progress
from redrived.processes import wire
from redrived.processes.notify_socket import Notice
from redrived.store.unit import to_json


def progress(done: float | None, total: float | None, text: str | None) -> Progress:
    return Progress(done=done, total=total, text=None if text is None else shortened(text))


def metrics(said: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """The metrics that are kept; None when there are none."""
    kept: dict[str, Any] = {}
    for name, value in (said or {}).items():
        if has_room(kept, name) and _is_plain(value):
            kept[name] = shortened(value) if isinstance(value, str) else value
    return kept or None


def report(told: wire.Report) -> wire.Report:
    """The end of an attempt, with as much of its metrics as is kept."""
    if told.metrics is None:
        return told
    return msgspec.structs.replace(told, metrics=metrics(told.metrics))


def progress_after(notice: Notice, before: str | None) -> str | None:
    """The progress of a command, as JSON, after one more word; None when it says nothing of it.

    Each variable of the protocol stands for itself: what is not named stays as it was said.
    """
    if notice.progress is None and notice.status is None:
        return None
    last = msgspec.json.decode(before, type=Progress) if before else Progress()
    made = notice.progress or last
    text = last.text if notice.status is None else notice.status or None
    return to_json(progress(made.done, made.total, text))


def metrics_after(notice: Notice, before: str | None) -> str | None:
    """The metrics of a command, likewise."""
    if not notice.metrics:
        return None
    known: dict[str, Any] = msgspec.json.decode(before) if before else {}
    kept = metrics({**known, **notice.metrics})
    return to_json(kept) if kept else None


def _is_plain(value: Any) -> bool:
    """Whether it is what `job.metric` takes."""
    if isinstance(value, int):
        return -(2**63) < value < 2**63
    return value is None or isinstance(value, float | str)
