"""An attempt ended; what becomes of the job?

Nothing here reads the clock, the database or a socket: the engine gathers the facts,
`decide` answers, the store writes the answer down. What kind of failure it was has been
classified by then (`redrive.rules`), and how long to wait is the policy's (`redrive.policy`).

The failure, the conditions and the limits are heard in that order. A condition overrides
what the failure calls for; a limit overrides both, but only when they want another attempt:
a permanent error on the last attempt is `permanent`, not `exhausted`.
"""

from __future__ import annotations

from msgspec import Struct

from redrive.deciding.answers import Answers, ask
from redrive.deciding.because import spell, what_happened
from redrive.deciding.facts import Facts, Failed, Snoozed, Succeeded
from redrive.deciding.standing import WHY_DEAD, why_dead
from redrive.instants import SECOND
from redrive.lifecycle import JobState, Reason
from redrive.models import Decision, Json
from redrive.policy import delay_before
from redrive.rules import Classification

# Seconds. A task that asks for none has nothing to wait for, and would run without end.
SHORTEST_SNOOZE = 1.0


class Verdict(Struct, frozen=True, kw_only=True):
    """What to write down. An instant that is None stays as it was."""

    state: JobState
    reason: Reason | None = None  # why it is dead
    available_at: int | None = None
    delay: float | None = None
    held: bool = False
    refund: bool = False  # the attempt is given back
    lost: int = 0  # to be added to the job's budgets, like the next two
    interruptions: int = 0
    snoozes: int = 0
    decision: Decision | None = None  # None: there was nothing to decide
    condition_errors: list[str] = []


class _End(Struct, frozen=True):
    """Why there is no further attempt, and the rule that says so."""

    reason: Reason
    rule: str
    words: str


def decide(facts: Facts) -> Verdict:
    """What becomes of a job after an attempt."""
    match facts.ended:
        case Succeeded():
            return Verdict(state=JobState.DONE)
        case Snoozed(until):
            # Waiting was the task's own wish, so it does not use up an attempt.
            at = max(until, facts.now + round(SHORTEST_SNOOZE * SECOND))
            delay = (at - facts.now) / SECOND
            words = f"asked to wait: next in {spell(delay)}"
            return Verdict(
                state=facts.leased_from,
                available_at=at,
                delay=delay,
                refund=True,
                snoozes=1,
                decision=_decision(facts, delay=delay, rule="snooze", words=words),
            )
        case Failed() as failed:
            return _after_failure(facts, failed)


def _after_failure(facts: Facts, failed: Failed) -> Verdict:
    answers = ask(facts, failed)
    wait, rule, words = _next(facts, failed, answers)
    end = _end(facts, failed, answers) or _too_late(facts, wait)
    delay = wait if end is None else None
    if end is not None:
        rule, words = end.rule, f"not retried, {end.words}"
    words = f"{what_happened(failed.evidence, failed.classification)}: {words}"
    return Verdict(
        state=JobState.RETRY if end is None else JobState.DEAD,
        reason=None if end is None else end.reason,
        available_at=None if delay is None else facts.now + round(delay * SECOND),
        delay=delay,
        held=end is None and failed.was_lost and facts.on_lost == "hold",
        lost=int(failed.was_lost),
        decision=_decision(
            facts, retry=end is None, delay=delay, rule=rule, words=words, saw=answers.saw
        ),
        condition_errors=answers.errors,
    )


def _end(facts: Facts, failed: Failed, answers: Answers) -> _End | None:
    """Why there is no further attempt; None when there is one."""
    if failed.was_lost and facts.on_lost == "fail":
        return _End(Reason.ON_LOST, "on_lost", "on_lost is fail")
    if answers.stop:
        return _End(Reason.STOP_WHEN, f"stop_when {facts.policy.stop_when}", "stop_when is true")
    if answers.retry is False:
        rule = f"retry_when {facts.policy.retry_when}"
        return _End(Reason.RETRY_WHEN, rule, "retry_when is false")
    hopeless = None if answers.retry else _hopeless(facts, failed.classification)
    return hopeless or _limit(facts, failed)


def _hopeless(facts: Facts, found: Classification) -> _End | None:
    """What the failure by itself says against another attempt."""
    match found.category, facts.policy.unknown:
        case "permanent", _:
            return _End(Reason.PERMANENT, found.rule, "the error is permanent")
        case "unknown", "dead":
            return _End(
                Reason.UNKNOWN,
                "unknown",
                f"{WHY_DEAD[Reason.UNKNOWN]}, and the policy retries none such",
            )
        case "unknown", "once" if facts.unknown:
            return _End(
                Reason.UNKNOWN,
                "unknown",
                f"{WHY_DEAD[Reason.UNKNOWN]}, and the policy retries such once",
            )
        case _:
            return None


_LOST_ONCE = "it was lost, and max_lost allows no second time"


def _limit(facts: Facts, failed: Failed) -> _End | None:
    """What is used up, whoever would like another attempt."""
    lost = facts.lost + 1
    if failed.was_lost and lost >= facts.max_lost:
        often = f"{WHY_DEAD[Reason.POISON]}, {lost} times"
        return _End(Reason.POISON, "max_lost", often if lost > 1 else _LOST_ONCE)
    if facts.attempts >= facts.max_attempts:
        words = why_dead(Reason.EXHAUSTED, facts.max_attempts)
        return _End(Reason.EXHAUSTED, "max_attempts", words or "")
    return None


def _too_late(facts: Facts, wait: float) -> _End | None:
    """The end, where the next attempt would begin after the time for all of them is over."""
    window = facts.policy.retry_for
    since_first = (facts.now - facts.life_started_at) / SECOND + wait
    if window is None or since_first <= window:
        return None
    words = f"the next in {spell(wait)} would be later than retry_for of {spell(window)} allows"
    return _End(Reason.EXPIRED, "retry_for", words)


def _next(facts: Facts, failed: Failed, answers: Answers) -> tuple[float, str, str]:
    """How long to wait for the next attempt, which rule says so, and the words for it."""
    delay = delay_before(facts.policy, facts.attempts, facts.roll)
    cap, asked = facts.policy.retry_after_cap, failed.retry_after
    rule, because = failed.classification.rule, ""
    if answers.retry:
        rule, because = f"retry_when {facts.policy.retry_when}", ", retry_when is true"
    if asked > delay:
        delay = max(delay, min(asked, cap))
        because += f", Retry-After asks for {spell(asked)}"
        because += f" and {spell(cap)} is the most it gets" if asked > cap else ""
    if failed.was_lost and facts.on_lost == "hold":
        because += ", once released"
    return delay, rule, f"next in {spell(delay)}{because}"


def _decision(
    facts: Facts,
    *,
    rule: str,
    words: str,
    retry: bool = True,
    delay: float | None = None,
    saw: dict[str, Json] | None = None,
) -> Decision:
    because = f"attempt {facts.attempts} of {facts.max_attempts} {words}"
    return Decision(retry=retry, delay=delay, rule=rule, because=because, saw=saw or {})
