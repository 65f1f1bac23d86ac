"""What goes wrong, as problem+json (RFC 9457)."""

from __future__ import annotations

import math
import re

import msgspec
from starlette.responses import Response

from redrive.errors import RedriveError
from redrived.http.replies import Problem

STATUS = {
    "usage": 400,
    "unauthorized": 401,
    "not_allowed": 403,
    "not_found": 404,
    "wrong_state": 409,
    "try_later": 429,
    "config": 400,
}

# The hints of the whole daemon name commands. Here they name what HTTP has instead, where it has.
_IN_HTTP = {
    r"`redrive requeue (\d+) --force`": r'`POST /v1/jobs/\1/requeue` with `{"force": true}`',
    r"`redrive (requeue|cancel) (\d+)`": r"`POST /v1/jobs/\2/\1`",
    r"`redrive show (\d+)`": r"`GET /v1/jobs/\1`",
    "--force": '`{"force": true}`',
    "`redrive jobs` lists them": "`GET /v1/jobs` lists them",
    "`redrive runs` lists them": "`GET /v1/worker/metrics` tells of those that failed last",
}


class HttpProblem(RedriveError):
    """A refusal that only HTTP knows; `status` says which."""

    code = "http"

    def __init__(self, status: int, message: str, *, hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.status = status


def problem(error: RedriveError) -> Response:
    if isinstance(error, HttpProblem):
        return answer(error.status, error.code, error.message, error.hint)
    retry_after = getattr(error, "retry_after", None)
    return answer(
        STATUS.get(error.code, 500), error.code, error.message, error.hint, retry_after=retry_after
    )


def answer(
    status: int, code: str, message: str, hint: str = "", *, retry_after: float | None = None
) -> Response:
    body = Problem(
        type="about:blank",
        title=message,
        status=status,
        code=code,
        detail=in_http(hint) or None,
        retry_after=retry_after,
    )
    headers: dict[str, str] = {}
    if retry_after is not None:
        headers["Retry-After"] = str(max(1, math.ceil(retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="redrive"'
    return Response(
        msgspec.json.encode(body), status, headers, media_type="application/problem+json"
    )


def in_http(hint: str) -> str:
    for typed, sent in _IN_HTTP.items():
        hint = re.sub(typed, sent, hint)
    return hint
