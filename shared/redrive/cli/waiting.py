"""What is said and returned after waiting for jobs and runs."""

from __future__ import annotations

from collections.abc import Sequence

from redrive.cli.output import remark, say
from redrive.errors import Exit, UsageProblem


def check(wait: bool, timeout: float | None) -> None:
    if timeout is not None and not wait:
        raise UsageProblem("--timeout says how long to wait, and --wait was not given")


def say_ends(ends: dict[str, str]) -> None:
    for id, state in ends.items():
        say(f"{'run' if id.startswith('r') else 'job'} {id} {state}")


def exit_code(ids: Sequence[str], ends: dict[str, str]) -> int:
    """0: all done; 1: some ended otherwise; 124: some had not ended in time."""
    left = [id for id in ids if id not in ends]
    if left:
        others = f" and {len(left) - 1:,} others" if len(left) > 1 else ""
        remark(f"time ran out before {left[0]}{others} had ended")
        return Exit.TIMED_OUT
    return Exit.OK if set(ends.values()) <= {"done"} else Exit.FAILED
