"""Why a run is where it is: the step it stands at, and what that waits for; pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from redrive.instants import iso
from redrive.models import Run, StepState
from redrive.protocol.queries import WhyReply
from redrive.protocol.rows import GateRow

_HALTED = ("dead", "cancelled")


def explain_run(run: Run, gates: Sequence[GateRow]) -> WhyReply:
    """`gates` are those of its batch."""
    match run.state:
        case "done":
            return _reply(run, "done", "every step of it has succeeded or was skipped")
        case "failed" | "cancelled":
            return _ended(run)
        case "running":
            return _running(run, gates)


def _ended(run: Run) -> WhyReply:
    step = next((each for each in run.steps if each.state in _HALTED), None)
    if step is None:
        return _reply(run, run.state, f"it was {run.state}")
    said = step.error.message if step.error else None
    reason = ": ".join(filter(None, [step.why, said]))
    text = f"step {step.name} is {step.state}: {reason or 'it says no more'}"
    is_permanent = step.error is not None and step.error.category == "permanent"
    hint = f"`redrive requeue {run.id}{' --force' * is_permanent}` resumes there"
    if step.job is not None:
        hint += f"; `redrive why {step.job}` says more"
    return _reply(run, run.state, text, {"step": step.name, "job": step.job}, hint)


def _running(run: Run, gates: Sequence[GateRow]) -> WhyReply:
    order = ("clearing", "leased", "retry", "queued", "gated")
    live = sorted(
        (step for step in run.steps if step.state in order),
        key=lambda each: order.index(each.state),
    )
    if not live:
        return _reply(run, "running", "its next step begins in a moment")
    step = live[0]
    if step.state == "gated":
        return _gated(run, step, gates)
    text = f"step {step.name} is {step.why or step.state}"
    hint = f"`redrive why {step.job}` says more" if step.job is not None else ""
    return _reply(run, "step", text, {"step": step.name, "job": step.job}, hint)


def _gated(run: Run, step: StepState, gates: Sequence[GateRow]) -> WhyReply:
    gate = max((each for each in gates if each.step == step.name), key=lambda each: each.round)
    saw: dict[str, Any] = {"step": step.name, "unsettled": gate.unsettled, "waiting": gate.waiting}
    if step.scheduled_for is not None:
        saw["opens_at"] = iso(step.scheduled_for)
        text = f"step {step.name} waits for the gate of batch {run.batch}, open at"
        return _reply(run, "gate_timer", f"{text} {iso(step.scheduled_for)}", saw)
    n = gate.unsettled
    runs = "1 run has" if n == 1 else f"{n} runs have"
    text = f"step {step.name} waits for its batch {run.batch}: {runs} not settled the steps before"
    return _reply(run, "gate", f"{text} it", saw)


def _reply(
    run: Run, code: str, text: str, saw: dict[str, Any] | None = None, hint: str = ""
) -> WhyReply:
    return WhyReply(id=run.id, state=run.state, code=code, text=text, saw=saw or {}, hint=hint)
