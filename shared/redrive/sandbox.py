"""Jinja2 with everything taken out that could cost more than a glance.

Conditions and templates come from configs and playbooks and run inside the daemon, so no
expression may reach into Python, and none may take much time or memory. Jinja2's immutable
sandbox sees to the first. For the second, this has no globals, no repeating and formatting
by an operator, and none of the filters and methods whose result can be many times what they
are given. What remains can still grow a little with each step, and the steps be many, so all
that one evaluation makes is counted against `BUDGET`.

Importing this module imports Jinja2, so `redrive.config` and the clients do not.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from contextvars import ContextVar
from functools import wraps
from typing import Any, cast

from jinja2 import StrictUndefined
from jinja2.exceptions import SecurityError
from jinja2.filters import FILTERS
from jinja2.runtime import Context
from jinja2.sandbox import ImmutableSandboxedEnvironment

BUDGET = 512 * 1024  # characters and items that one evaluation may make

_left: ContextVar[int] = ContextVar("left of the budget", default=BUDGET)

_HARMLESS_FILTERS = [
    "abs",
    "capitalize",
    "d",
    "default",
    "first",
    "float",
    "int",
    "items",
    "last",
    "length",
    "list",
    "lower",
    "map",
    "max",
    "min",
    "reject",
    "rejectattr",
    "reverse",
    "select",
    "selectattr",
    "sort",
    "string",
    "title",
    "trim",
    "truncate",
    "unique",
    "upper",
    "urlencode",
]
_TEXT_METHODS = [
    "capitalize",
    "casefold",
    "count",
    "endswith",
    "find",
    "isalpha",
    "isdigit",
    "isnumeric",
    "lower",
    "lstrip",
    "removeprefix",
    "removesuffix",
    "rfind",
    "rsplit",
    "rstrip",
    "split",
    "splitlines",
    "startswith",
    "strip",
    "title",
    "upper",
]
_METHODS: Mapping[type, frozenset[str]] = {
    str: frozenset(_TEXT_METHODS),
    dict: frozenset({"get", "items", "keys", "values"}),
    list: frozenset({"count", "index"}),
}


class Sandbox(ImmutableSandboxedEnvironment):
    """Expressions over facts, and nothing else."""

    intercepted_binops = frozenset({"+", "*", "%"})

    def __init__(self) -> None:
        super().__init__(undefined=StrictUndefined, keep_trailing_newline=True)
        self.globals.clear()
        self.filters.clear()
        for name in _HARMLESS_FILTERS:
            self.filters[name] = _counting(FILTERS[name])
        self.filters |= {"join": _join, "replace": _replace, "tojson": _counting(_tojson)}

    def getattr(self, obj: Any, attribute: str) -> Any:
        # `args.items` is the argument of that name before it is the dict's method.
        if isinstance(obj, dict) and attribute in obj:
            return cast(dict[str, Any], obj)[attribute]
        return super().getattr(obj, attribute)

    def is_safe_attribute(self, obj: object, attr: str, value: Any) -> bool:
        return attr in _METHODS.get(type(obj), ())

    def wrap_str_format(self, value: Any) -> None:
        """`format` is no method here: a width of a billion is a gigabyte."""

    def call_binop(self, context: Context, operator: str, left: Any, right: Any) -> Any:
        if operator != "+" and not (_is_number(left) and _is_number(right)):
            raise SecurityError(f"`{operator}` is only for numbers")
        return _counted(super().call_binop(context, operator, left, right))


def renew_budget() -> None:
    """To be called before each evaluation, in the thread or task that evaluates."""
    _left.set(BUDGET)


def spend(size: int) -> None:
    """Counts `size` characters or items, and stops the evaluation that makes too many."""
    left = _left.get() - size
    if left < 0:
        raise SecurityError(f"it would make more than {BUDGET} characters or items")
    _left.set(left)


def _counted(value: Any) -> Any:
    if isinstance(value, str | list | tuple):
        spend(len(cast(str, value)))
    return cast(Any, value)


def _counting(filter_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(filter_)  # with the marks by which Jinja2 knows what else to pass in
    def counting(*args: Any, **options: Any) -> Any:
        return _counted(filter_(*args, **options))

    return counting


def _is_number(value: object) -> bool:
    return isinstance(value, int | float)


def _join(values: Iterable[object], separator: str = "") -> str:
    texts = [str(value) for value in values]
    spend(sum(map(len, texts)) + len(separator) * len(texts))
    return separator.join(texts)


def _replace(text: str, old: str, new: str) -> str:
    spend(len(text) + text.count(old) * len(new))
    return text.replace(old, new)


def _tojson(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
