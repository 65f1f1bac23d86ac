"""Conditions: one Jinja2 expression about a failed attempt, true or false.

`retry_when = "status_code >= 500"`. A condition is compiled when the config is read, and
one that cannot be compiled never gets into a running daemon. At run time there are three
outcomes, and the third is not silent: true, false, or ConditionFailed.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache

from redrive.errors import RedriveError, UsageProblem
from redrive.models import Json

LONGEST_CONDITION = 512  # characters


class ConditionFailed(RedriveError):
    """The condition could not be answered from the facts it was given."""

    code = "condition_failed"


class Condition:
    """A compiled condition; written bare or inside `{{ }}`."""

    def __init__(self, text: str) -> None:
        from redrive.expressions import compile_expression

        if len(text) > LONGEST_CONDITION:
            raise UsageProblem(
                f"the condition is {len(text)} characters long",
                hint=f"write it with at most {LONGEST_CONDITION}",
            )
        self.text = text
        self._expression = compile_expression(_bare(text))
        self.names = self._expression.names  # of the facts it asks about
        self.parts = self._expression.parts

    def holds(self, facts: Mapping[str, Json]) -> bool:
        """Whether the condition is true of `facts`; ConditionFailed when it cannot be told."""
        try:
            return _truth(self._expression.value(facts))
        except Exception as failed:
            raise ConditionFailed(
                f'the condition "{self.text}" failed: {failed}',
                hint="test with `is defined` or `is not none` what may be missing",
            ) from failed


@lru_cache(maxsize=1024)
def compile_condition(text: str) -> Condition:
    """The same text is compiled once."""
    return Condition(text)


def _bare(text: str) -> str:
    bare = text.strip()
    return bare[2:-2] if bare.startswith("{{") and bare.endswith("}}") else bare


def _truth(value: object) -> bool:
    # Templates make text of everything, and playbooks written for them count on this.
    if isinstance(value, str):
        return value.strip().lower() in {"true", "1", "yes"}
    return bool(value)
