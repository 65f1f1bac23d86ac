"""What the documents and the dashboard name is what there is."""

from __future__ import annotations

import json
import re
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

from support.http_side import Side

DOCS = Path(__file__).parents[3] / "docs"
OPERATIONS = (DOCS / "operations.md").read_text()
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


async def test_the_dashboard_shows_only_what_there_is(side: Side) -> None:
    panels = json.loads(DASHBOARD)["panels"]
    asked = named(" ".join(target["expr"] for panel in panels for target in panel["targets"]))
    assert asked - await known(side) == set()


async def test_every_metric_is_explained_and_every_explained_one_exists(side: Side) -> None:
    told = {name for name in named(OPERATIONS) if name.startswith("redrive_")}
    exist = {re.sub(r"_(bucket|count|sum)$", "", name) for name in await known(side)}
    ours = {name for name in exist if name.startswith("redrive_")}
    assert {re.sub(r"_bucket$", "", name) for name in told} == ours
