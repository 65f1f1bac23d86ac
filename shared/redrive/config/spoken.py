"""What conditions and templates speak of: names that nothing gives would fail at run time.

Each list holds the names of the facts that the daemon has at that place. The engines behind
the expressions are loaded only by a config that has any.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Any, cast

from msgspec import to_builtins

from redrive.config.lines import Key
from redrive.config.problems import Problems, instead
from redrive.config.values import quoted

if TYPE_CHECKING:
    from redrive.conditions import Condition
    from redrive.config.sections import HttpCall
    from redrive.expressions import Expression, Text

OF_A_JOB = ("args", "attempt", "batch", "job", "max_attempts", "queue", "run", "step", "task")
OF_A_FAILURE = (
    *OF_A_JOB, "category", "data", "error", "error_type", "exception", "exit_code", "lost",
    "result", "retry_after", "signal", "stage", "status_code",
)  # fmt: skip
OF_A_KEY = ("args",)
OF_A_RUN = ("args", "batch", "key", "run", "steps")
OF_A_SLOT = ("date", "schedule", "slot")
OF_A_HOOK = ("environment", "event", "job", "missed", "node", "on")


def check_condition(
    text: str | None, key: Key, known: Collection[str], problems: Problems
) -> Condition | None:
    """The condition, when there is one, compiled; names it asks about are known ones."""
    if text is None:
        return None
    from redrive.conditions import compile_condition

    condition = compile_condition(text)
    check_names(condition.names, key, known, problems)
    return condition


def check_templates(value: Any, key: Key, known: Collection[str], problems: Problems) -> None:
    """The same for every text in `value`, however deep."""
    for at, template in templates(value, key):
        check_names(template.names, at, known, problems)


def check_call_templates(
    call: HttpCall, key: Key, known: Collection[str], problems: Problems
) -> None:
    parts = to_builtins(call)
    for name in ("url", "headers", "params", "json", "body"):
        check_templates(parts[name], (*key, name), known, problems)


def check_names(
    names: Collection[str], key: Key, known: Collection[str], problems: Problems
) -> None:
    for name in sorted({*names} - {*known}):
        problems.doubt(key, f"unknown name {quoted(name)}, {instead(name, sorted(known))}")


def templates(value: Any, key: Key) -> Iterator[tuple[Key, Expression | Text]]:
    """The templates in `value`, compiled, each with its place."""
    from redrive.templates import compile_template, is_template

    match value:
        case str() if is_template(value):
            yield key, compile_template(value)
        case {**entries}:
            for name, entry in cast(dict[str, Any], entries).items():
                yield from templates(entry, (*key, name))
        case [*items]:
            for place, item in enumerate(items):
                yield from templates(item, (*key, place))
        case _:
            pass
