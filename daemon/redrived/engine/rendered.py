"""What a task or a hook is configured to send, with its templates filled in."""

from __future__ import annotations

from collections.abc import Mapping

import msgspec
from msgspec.structs import replace

from redrive.config.sections import HttpCall
from redrive.models import Json
from redrive.templates import render


def rendered_text(template: Json, facts: Mapping[str, Json]) -> str:
    """Text as it is; a value that stands alone in its template as JSON writes it."""
    value = render(template, facts)
    return value if isinstance(value, str) else msgspec.json.encode(value).decode()


def rendered_call(http: HttpCall, facts: Mapping[str, Json]) -> HttpCall:
    def texts(templates: Mapping[str, str]) -> dict[str, str]:
        return {name: rendered_text(text, facts) for name, text in templates.items()}

    return replace(
        http,
        url=rendered_text(http.url, facts),
        headers=texts(http.headers),
        params=texts(http.params),
        json=render(http.json, facts),
        body=None if http.body is None else rendered_text(http.body, facts),
    )
