"""What is said and returned after waiting for jobs and runs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from redrive.cli.output import remark, say
from redrive.errors import Exit, RedriveError, UsageProblem

if TYPE_CHECKING:
    from redrive.blocking import Client

_AT_ONCE = 200  # ids


def check(wait: bool, timeout: float | None) -> None:
    if timeout is not None and not wait:
        raise UsageProblem(
            "--timeout says how long to wait, and --wait was not given", hint="add --wait"
        )


def say_ends(ends: dict[str, str]) -> None:
    for id, state in ends.items():
        say(f"{'run' if id.startswith('r') else 'job'} {id} {state}")


def states(client: Client, ids: Sequence[str], ends: dict[str, str]) -> dict[str, str]:
    """The ends, and where the others are by now; nothing of them when no daemon answers."""
    left = [id for id in ids if id not in ends]
    jobs = [id for id in left if not id.startswith("r")]
    found: dict[str, str] = {}
    with suppress(RedriveError):
        for start in range(0, len(jobs), _AT_ONCE):
            asked = jobs[start : start + _AT_ONCE]
            found |= _jobs(client, f"id:{','.join(asked)}")
        found |= {id: client.run(id).state for id in left if id.startswith("r")}
    return found | ends


def _jobs(client: Client, where: str) -> dict[str, str]:
    """Of jobs that hold much a page has few."""
    found: dict[str, str] = {}
    more: str | None = None
    while True:
        page = client.jobs(where, limit=_AT_ONCE, after=more)
        found |= {str(job.id): str(job.state) for job in page.jobs}
        if (more := page.after) is None:
            return found


def exit_code(ids: Sequence[str], ends: dict[str, str]) -> int:
    """0: all done; 1: some ended otherwise; 124: some had not ended in time."""
    left = [id for id in ids if id not in ends]
    if left:
        others = f" and {len(left) - 1:,} more" if len(left) > 1 else ""
        remark(f"time ran out before {left[0]}{others} had ended")
        return Exit.TIMED_OUT
    return Exit.OK if set(ends.values()) <= {"done"} else Exit.FAILED
