"""What the documents and the dashboard name is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from support.http_side import Side
from support.markdown import code

DOCS = Path(__file__).parents[3] / "docs"
OPERATIONS = (DOCS / "operations.md").read_text()
HTTP = (DOCS / "http.md").read_text()
DASHBOARD = (DOCS / "grafana-dashboard.json").read_text()


async def known(side: Side) -> set[str]:
    """Every metric, with the names its samples have."""
    text = (await side.get("/metrics")).text
    found: set[str] = set()
    for family in text_string_to_metric_families(text):
        ends = {"counter": ("_total",), "histogram": ("_bucket", "_count", "_sum", "")}
        found |= {family.name + end for end in ends.get(family.type, ("",))}
    return found | {"redrive_build_info"}


def named(text: str) -> set[str]:
    return set(re.findall(r"\b(?:redrive|process)_[a-z_]+\b", text))


async def test_every_path_is_explained_and_every_explained_one_exists(side: Side) -> None:
    paths = (await side.get("/openapi.json")).json()["paths"]
    there = {f"{method.upper()} {path}" for path, item in paths.items() for method in item}
    told = re.findall(r"^\| `((?:GET|POST) [^`]+)` \|", HTTP, re.MULTILINE)
    assert sorted(told) == sorted({*there, "GET /openapi.json"})


async def test_every_field_and_status_is_explained(side: Side) -> None:
    document = (await side.get("/openapi.json")).json()
    told = {word for words in code(DOCS / "http.md") for word in words.split()}
    for name in ("NewJob", "RunStatus", "RunMetrics", "Problem"):
        fields = set(document["components"]["schemas"][name]["properties"])
        assert fields - told - {"type", "status"} == set(), name
    operations = [op for item in document["paths"].values() for op in item.values()]
    refused = {code for op in operations for code in op["responses"] if code >= "400"}
    rows = re.findall(r"^\| ([\d, ]+) \|", HTTP, re.MULTILINE)
    explained = {code for row in rows for code in row.split(", ")}
    assert refused - explained == set()


async def test_the_dashboard_shows_only_what_there_is(side: Side) -> None:
    panels = json.loads(DASHBOARD)["panels"]
    asked = named(" ".join(target["expr"] for panel in panels for target in panel["targets"]))
    assert asked - await known(side) == set()


async def test_every_metric_is_explained_and_every_explained_one_exists(side: Side) -> None:
    told = {name for name in named(OPERATIONS) if name.startswith("redrive_")}
    exist = {re.sub(r"_(bucket|count|sum)$", "", name) for name in await known(side)}
    ours = {name for name in exist if name.startswith("redrive_")}
    assert {re.sub(r"_bucket$", "", name) for name in told} == ours
