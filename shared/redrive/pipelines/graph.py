"""A pipeline drawn as text: every step below those it needs, what is special about it beside it.

request  request (bulk)
└─ download  download (bulk) · 15m after, gate of the batch, retries together
"""

from __future__ import annotations

from collections.abc import Iterator

from redrive.config.sections import Task
from redrive.config.values import format_duration
from redrive.pipelines.definition import Definition, Step

_ONE_OF_MORE, _LAST = "├─ ", "└─ "
_UNDER = {"": "", _ONE_OF_MORE: "│  ", _LAST: "   "}


def draw(definition: Definition) -> str:
    """A step that needs several stands under the last of them and names the others."""
    order = {step.name: place for place, step in enumerate(definition.in_order)}
    below: dict[str | None, list[Step]] = {}
    for step in definition.in_order:
        parent = max(step.needs, key=order.__getitem__, default=None)
        below.setdefault(parent, []).append(step)
    lines: list[str] = []
    # By hand, for a chain may be longer than Python recurses.
    to_come: list[tuple[Step, str | None, str, str]]
    to_come = [(step, None, "", "") for step in reversed(below.get(None, []))]
    while to_come:
        step, parent, indent, branch = to_come.pop()
        lines.append(indent + branch + _line(step, parent))
        children = below.get(step.name, [])
        for child in reversed(children):
            child_branch = _LAST if child is children[-1] else _ONE_OF_MORE
            to_come.append((child, step.name, indent + _UNDER[branch], child_branch))
    return "\n".join(lines)


def _line(step: Step, parent: str | None) -> str:
    what = ", ".join(_special(step, parent))
    lane = step.lane
    task = _kind(step.inline) if step.inline else lane.task
    return f"{step.name}  {task} ({lane.queue}){' · ' if what else ''}{what}"


def _kind(task: Task) -> str:
    return "python" if task.python else "shell" if task.command else "http"


def _special(step: Step, parent: str | None) -> Iterator[str]:
    others = [need for need in step.needs if need != parent]
    if others:
        yield f"needs {', '.join(others)} too"
    if step.when:
        yield f"when {step.when}"
    if step.delay:
        yield f"{format_duration(step.delay)} after"
    if step.gate:
        yield "gate of the batch"
    if step.lane.policy.max_attempts > 1:
        yield f"{step.lane.policy.max_attempts} attempts"
    if step.retry_together:
        yield "retries together"
    if step.clear:
        yield f"cleared by {step.clear.task}"
