"""Templates: values from facts, inside the arguments of a step or the parts of a request.

`"{{ steps.parse.result.pages }}"` alone gives the value itself, a number or a list; with
anything around it, text. What is not defined is an error, never an empty text.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING

from redrive.errors import RedriveError, UsageProblem
from redrive.models import Json

if TYPE_CHECKING:
    from redrive.expressions import Expression, Text

LONGEST_TEMPLATE = 16 * 1024  # characters


class TemplateFailed(RedriveError):
    """The template could not be filled in from the facts it was given."""

    code = "template_failed"


@lru_cache(maxsize=1024)
def compile_template(text: str) -> Expression | Text:
    """`text` compiled; UsageProblem, with the place, when it is refused."""
    from redrive.expressions import compile_text

    if len(text) > LONGEST_TEMPLATE:
        raise UsageProblem(
            f"the template is {len(text)} characters long",
            hint=f"write it with at most {LONGEST_TEMPLATE}",
        )
    return compile_text(text)


def render(value: Json, facts: Mapping[str, Json]) -> Json:
    """`value` with the templates in its texts, however deep, filled in from `facts`."""
    match value:
        case str() if is_template(value):
            return _filled_in(value, facts)
        case {**entries}:
            return {key: render(entry, facts) for key, entry in entries.items()}
        case [*items]:
            return [render(item, facts) for item in items]
        case _:
            return value


def key_of(task: str, template: str, args: Mapping[str, Json]) -> str:
    """The `limit_key` that a task's `concurrency_key` makes of a job's arguments."""
    key = f"{task}/{render(template, {'args': dict(args)})}"
    return key.replace("\0", "\N{REPLACEMENT CHARACTER}")  # PostgreSQL keeps no NUL in a text


def is_template(text: str) -> bool:
    """Whether there is anything in it to fill in."""
    return "{{" in text or "{%" in text or "{#" in text


def _filled_in(text: str, facts: Mapping[str, Json]) -> Json:
    try:
        return compile_template(text).value(facts)
    except UsageProblem:
        raise
    except Exception as failed:
        raise TemplateFailed(
            f"the template `{text}` failed: {failed}",
            hint="write `| default(...)` after what may be missing",
        ) from failed
