"""The document tells the truth: whatever it allows is answered as it says."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from support.http_side import TOKEN, Side, http_side
from support.schemas import assert_fits

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3)
    ),
    max_leaves=8,
)
WORDS = st.text(max_size=30) | st.sampled_from(
    ["work", "bulk", "queue:x", "state:dead", "-id", "1"]
)


async def test_the_document_is_whole(side: Side) -> None:
    document = (await side.get("/openapi.json")).json()
    assert document["openapi"] == "3.1.0"
    text = json.dumps(document)
    for reference in set(_references(document)):
        assert reference.removeprefix("#/components/schemas/") in document["components"]["schemas"]
    assert "/v1/jobs/{id}/requeue" in document["paths"]
    operations = [op for path in document["paths"].values() for op in path.values()]
    ids = [operation["operationId"] for operation in operations]
    assert len(ids) == len(set(ids))
    assert TOKEN not in text


async def test_every_change_says_that_it_needs_the_token(side: Side) -> None:
    document = (await side.get("/openapi.json")).json()
    for path in document["paths"].values():
        if "post" in path:
            assert path["post"]["security"] == [{"token": []}]
            assert "401" in path["post"]["responses"]


async def test_every_answer_has_the_shape_that_the_document_gives(side: Side) -> None:
    document = (await side.get("/openapi.json")).json()
    done, failed = [*await side.bench.enqueue("work"), *await side.bench.enqueue("fail")]
    for id in (done, failed):
        await side.bench.ended(id)
    runs = [await side.run(pipeline) for pipeline in ("good", "bad")]
    await side.post("/v1/jobs", {"task": "work", "at": "2099-01-01T00:00:00Z", "unique": "k"})
    answers = [
        *[
            ("get", path, path)
            for path in ("/healthz", "/readyz", "/v1/jobs", "/v1/worker/metrics")
        ],
        *[("get", "/v1/jobs/{id}", f"/v1/jobs/{id}") for id in (done, failed)],
        *[("get", "/v1/worker/runs/{id}/status", f"/v1/worker/runs/{run}/status") for run in runs],
        ("post", "/v1/jobs", "/v1/jobs"),
        ("post", "/v1/jobs/{id}/requeue", f"/v1/jobs/{failed}/requeue"),
        ("post", "/v1/jobs/{id}/cancel", f"/v1/jobs/{done}/cancel"),
        ("get", "/v1/jobs/{id}", "/v1/jobs/77"),
    ]
    for method, path, asked in answers:
        body = {"task": "work"} if asked == "/v1/jobs" else None
        reply = await (side.get(asked) if method == "get" else side.post(asked, body))
        described = document["paths"][path][method]["responses"][str(reply.status_code)]
        (content,) = described["content"].values()
        assert_fits(reply.json(), content["schema"], document, asked)


def _references(value: Any) -> list[str]:
    if isinstance(value, dict):
        own = [value["$ref"]] if "$ref" in value else []
        return [*own, *(r for inner in value.values() for r in _references(inner))]
    if isinstance(value, list):
        return [r for inner in value for r in _references(inner)]
    return []


@pytest.mark.parametrize("with_token", [True, False])
def test_whatever_is_sent_is_answered_as_the_document_says(
    tmp_path: Path, with_token: bool
) -> None:
    """One daemon, many requests: the fuzzer runs inside its loop's thread."""

    async def run() -> None:
        async with http_side(tmp_path) as side:
            document = (await side.get("/openapi.json")).json()
            loop = asyncio.get_running_loop()
            await asyncio.to_thread(_fuzz, side, document, loop, with_token)
            assert (await side.get("/healthz")).status_code == 200

    asyncio.run(run())


def _fuzz(
    side: Side, document: dict[str, Any], loop: asyncio.AbstractEventLoop, with_token: bool
) -> None:
    operations = [
        (path, method, operation)
        for path, item in document["paths"].items()
        for method, operation in item.items()
    ]

    @settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck))
    @given(st.sampled_from(operations), st.data())
    def send(chosen: tuple[str, str, dict[str, Any]], data: st.DataObject) -> None:
        path, method, operation = chosen
        id = data.draw(st.integers(0, 5).map(str) | st.integers(0, 2**80).map(str) | WORDS)
        names = [p["name"] for p in operation.get("parameters", []) if p["in"] == "query"]
        params = {name: data.draw(WORDS) for name in names if data.draw(st.booleans())}
        body = None
        if "requestBody" in operation:
            fields = st.sampled_from(["task", "args", "queue", "delay", "at", "hold", "force", "x"])
            body = data.draw(JSON | st.dictionaries(fields, JSON | st.just("work"), max_size=4))
        request = side.client.build_request(
            method.upper(),
            path.replace("{id}", quote(id, safe="", errors="replace")),
            params=params,
            content=None if body is None else json.dumps(body, ensure_ascii=True).encode(),
            headers={"Content-Type": "application/json"}
            | ({"Authorization": f"Bearer {TOKEN}"} if with_token else {}),
        )
        answered = asyncio.run_coroutine_threadsafe(side.client.send(request), loop).result(30)
        allowed = set(operation["responses"]) | {"404", "405"}  # an id may leave the path
        assert str(answered.status_code) in allowed, answered.text
        assert answered.status_code < 500, answered.text
        if answered.status_code >= 400:
            assert answered.headers["content-type"] == "application/problem+json"
            assert {"title", "status", "code"} <= answered.json().keys()

    send()
