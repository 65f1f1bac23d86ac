"""What would be: of a text, a policy, the rules or a verb, with nothing done yet."""

from __future__ import annotations

from typing import Any

from redrive.models import Job
from redrive.protocol.envelope import Reply, Request
from redrive.protocol.rows import PolicyRow, RuleChange, RunPlan


class ClassifyReply(Reply, frozen=True, kw_only=True):
    category: str
    error_type: str
    message: str
    user_message: str
    guidance: str
    should_retry: bool
    rule: str


class Classify(Request, frozen=True, kw_only=True):
    Reply = ClassifyReply
    text: str
    task: str | None = None


class PolicyReply(Reply, frozen=True, kw_only=True):
    name: str
    policy: dict[str, Any]
    timeline: list[PolicyRow]


class ShowPolicy(Request, frozen=True, kw_only=True):
    Reply = PolicyReply
    name: str  # of a policy, or of a task


class RulesReply(Reply, frozen=True, kw_only=True):
    examined: int
    changed: list[RuleChange]


class TestRules(Request, frozen=True, kw_only=True):
    Reply = RulesReply
    since: float = 7 * 86400.0


class PreviewReply(Reply, frozen=True, kw_only=True):
    """What a verb would do to a set, frozen at `as_of`; the numbers are of jobs."""

    total: int
    by_state: dict[str, int]
    fits: int
    excluded: dict[str, int]  # why → how many
    sample: list[Job]
    as_of: int
    newest: int  # the highest id included; later arrivals are not
    runs: list[RunPlan] = []


class Preview(Request, frozen=True, kw_only=True):
    """The fields are those of `Act`; jobs and runs are named apart."""

    Reply = PreviewReply
    verb: str
    ids: list[int] = []
    where: str | None = None
    force: bool = False
    runs: list[str] = []
    from_step: str | None = None
    again: bool = False
    canary: int | None = None
    pace: str | None = None
    stop_at: float | None = None
