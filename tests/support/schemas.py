"""JSON Schema, as far as our own schemas go."""

from __future__ import annotations

import re
from typing import Any

_TYPES: dict[str, type | tuple[type, ...]] = {
    "string": str,
    "integer": int,
    "number": (int, float),
    "boolean": bool,
    "array": list,
    "object": dict,
}
_INSTANT = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z"


def assert_fits(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str) -> None:
    """That `value` is what the schema says, and that the schema says something."""
    assert schema, f"{at} is described by nothing"
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        assert_fits(value, document["components"]["schemas"][name], document, at)
    elif "anyOf" in schema:
        kinds = [
            kind for kind in schema["anyOf"] if (kind.get("type") == "null") == (value is None)
        ]
        assert_fits(value, kinds[0], document, at)
    elif schema.get("type") != "null":
        _assert_is(value, schema, document, at)


def _assert_is(value: Any, schema: dict[str, Any], document: dict[str, Any], at: str) -> None:
    kind = schema.get("type")
    assert kind is None or isinstance(value, _TYPES[kind]), f"{at}: {value!r} is no {kind}"
    assert value in schema.get("enum", [value]), f"{at}: {value!r}"
    if schema.get("format") == "date-time":
        assert re.fullmatch(_INSTANT, value), f"{at}: {value!r}"
    if kind == "array" and schema["items"]:
        for item in value:
            assert_fits(item, schema["items"], document, at)
    if "properties" in schema:
        known = schema["properties"]
        assert {*schema.get("required", [])} <= value.keys() <= known.keys(), at
        for name, item in value.items():
            if known[name].keys() - {"default"}:  # the rest may be any JSON
                assert_fits(item, known[name], document, f"{at}.{name}")
