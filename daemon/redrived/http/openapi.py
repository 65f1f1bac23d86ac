"""The OpenAPI document, made of the routes and the records themselves."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, cast

import msgspec
from msgspec import Struct

from redrive import __version__
from redrived.http.replies import Problem
from redrived.http.routes import Route

_REFUSALS = {
    400: "the request makes no sense",
    401: "the token is missing or wrong",
    403: "this listener only reads, or it is refused for good",
    404: "there is no such thing",
    409: "it is not in a state for that",
    413: "the body is too large",
    415: "the body is no JSON",
    421: "another host was asked for",
    429: "not yet; Retry-After says when",
    503: "not now",
}


def document(routes: Iterable[Route]) -> dict[str, Any]:
    listed = list(routes)
    kinds: set[type[Struct]] = {Problem}
    kinds |= {kind for route in listed for kind in (route.body, route.replies) if kind is not None}
    ordered = sorted(kinds, key=lambda kind: kind.__name__)
    schemas, components = msgspec.json.schema_components(
        ordered, ref_template="#/components/schemas/{name}"
    )
    names = dict(zip(ordered, schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in listed:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, names)
    return {
        "openapi": "3.1.0",
        "info": {"title": "redrive", "version": __version__},
        "paths": paths,
        "components": {
            "schemas": {name: _as_shown(schema) for name, schema in components.items()},
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _as_shown(schema: Any) -> Any:
    """Instants are numbers in the records, and texts in JSON."""
    match schema:
        case {"format": "date-time"}:
            return {**schema, "type": "string"}
        case {**parts}:
            return {name: _as_shown(part) for name, part in cast(dict[str, Any], parts).items()}
        case [*items]:
            return [_as_shown(item) for item in items]
        case _:
            return schema


def _operation(route: Route, names: dict[type, dict[str, Any]]) -> dict[str, Any]:
    schema = names[route.replies] if route.replies else {}
    refusals = {421, *route.refusals, *(() if route.needs == "nothing" else (401, 403, 503))}
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": route.endpoint.__name__ + "_" + route.path.rpartition("/")[2].strip("{}"),
        "responses": {
            **{
                str(status): {
                    "description": route.summary,
                    "content": {route.media: {"schema": schema}},
                }
                for status in route.status
            },
            **{str(status): _refusal(status) for status in sorted(refusals)},
        },
    }
    if route.parameters:
        operation["parameters"] = [dict(parameter) for parameter in route.parameters]
    if route.body is not None:
        operation["requestBody"] = {
            "required": any(field.required for field in msgspec.structs.fields(route.body)),
            "content": {"application/json": {"schema": names[route.body]}},
        }
    if route.needs != "nothing":
        # Reading asks for the token only where other machines can reach the listener.
        operation["security"] = [{"token": []}, *([{}] if route.needs == "read" else [])]
    return operation


def _refusal(status: int) -> dict[str, Any]:
    content = {"application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": _REFUSALS[status], "content": content}
