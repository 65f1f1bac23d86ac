"""Rehearsals: what rules and policies would make of something."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

import msgspec

from redrive.clock import SECOND
from redrive.config import load
from redrive.errors import UsageProblem
from redrive.models import ErrorRecord, Event, recorded_error
from redrive.orders import LONGEST_DELAY
from redrive.outcomes import Permanent, Transient
from redrive.policy import timeline
from redrive.protocol.rehearsals import (
    Classify,
    ClassifyReply,
    PolicyReply,
    RulesReply,
    ShowPolicy,
    TestRules,
)
from redrive.protocol.rows import PolicyRow, RuleChange
from redrive.rules import Evidence, Rulebook, Said
from redrived.api.server import Asker
from redrived.engine.engine import Engine
from redrived.store import events


async def classify(engine: Engine, asker: Asker, request: Classify) -> ClassifyReply:
    return ClassifyReply(**engine.definitions.rulebook.classify_text(request.text, request.task))


async def show_policy(engine: Engine, asker: Asker, request: ShowPolicy) -> PolicyReply:
    policy = engine.definitions.policy(request.name)
    return PolicyReply(
        name=request.name,
        policy=msgspec.to_builtins(policy),
        timeline=[
            PolicyRow(
                attempt=each.attempt, delay=each.delay, earliest=each.at_min, latest=each.at_max
            )
            for each in timeline(policy)
        ],
    )


async def test_rules(engine: Engine, asker: Asker, request: TestRules) -> RulesReply:
    """Classify recorded errors again, by the rules as the file has them now."""
    path = engine.definitions.config.path
    if path is None:
        raise UsageProblem("the daemon was not started from a file", hint="there is none to test")
    if not 0 <= request.since <= LONGEST_DELAY:
        raise UsageProblem(
            f"there are no errors of the last {request.since:g} s", hint="from 0 s to 100 years"
        )
    since = engine.clock.now() - round(request.since * SECOND)
    recorded = await engine.store.read(events.errors_since, since)
    # In a thread: there may be 100,000 of them, and the loop has others to serve.
    changes = await asyncio.to_thread(_changes, path, recorded)
    return RulesReply(examined=len(recorded), changed=changes)


def _changes(path: str, recorded: Iterable[tuple[str | None, Event]]) -> list[RuleChange]:
    rulebook = Rulebook(load(path).config.errors)
    changes: list[RuleChange] = []
    for task, event in recorded:
        error = recorded_error(event.data["error"])
        found = rulebook.classify(_evidence(task, error, event.data.get("evidence", {})))
        if (found.category, found.error_type) != (error.category, error.error_type):
            changes.append(
                RuleChange(
                    job=event.job or 0,
                    message=error.message,
                    was=f"{error.error_type} ({error.category})",
                    now=f"{found.error_type} ({found.category})",
                    rule=found.rule,
                )
            )
    return changes


def _evidence(task: str | None, error: ErrorRecord, kept: dict[str, Any]) -> Evidence:
    """What was recorded of the evidence; a verdict of the supervisor is a rule by itself."""
    kind: Any = error.rule if error.rule in ("stalled", "lost", "timeout") else None
    exception = tuple(kept.get("exception", ()))
    had_none = error.message == Evidence(exception=exception).in_words
    return Evidence(
        message="" if had_none else error.message,
        task=task,
        stage=error.stage,
        traceback=error.traceback,
        kind=kind,
        said=_said(error, exception),
        exception=exception,
        exit_code=kept.get("exit_code"),
        signal=kept.get("signal"),
        oom=kept.get("oom", False),
        status=kept.get("status"),
    )


def _said(error: ErrorRecord, exception: tuple[str, ...]) -> Said | None:
    """What was said outright; the type only where no rule of the config had put in another."""
    if error.rule.startswith("said "):
        return Said(category=error.category, type=error.error_type)
    if f"{Permanent.__module__}.{Permanent.__name__}" in exception:
        return Said(category="permanent")
    if f"{Transient.__module__}.{Transient.__name__}" in exception:
        return Said(category="transient")
    return None
