"""What became of those that a verb was for: one result each, and how the command exits."""

from __future__ import annotations

from typing import Any

from redrive.cli import words
from redrive.cli.output import print_each, print_json, remark, say
from redrive.cli.settings import Settings
from redrive.errors import Exit, WrongState
from redrive.models import plain
from redrive.protocol.commands import Act, Acted, Outcome
from redrive.protocol.envelope import Refusal

_DONE = {
    "requeue": "requeued",
    "cancel": "cancelled",
    "kill": "killed",
    "restart": "restarted",
    "run-now": "due now",
    "hold": "held",
    "release": "released",
    "discard": "discarded",
}
_ENDING = ("cancel", "kill", "restart")
# What the verb alone does not say.
_NEWS = {
    "queued": "it is queued",
    "running": "it is running",
    "retrying": "it is retrying",
    "clearing": "the data of its step is cleared first",
}


def tell_one(settings: Settings, wish: Act, acted: Acted) -> Exit:
    (outcome,) = acted.outcomes
    if outcome.refused is not None:
        from redrive.client.refusals import error_of

        refused = outcome.refused
        raise error_of(
            Refusal(
                code=refused.code,
                message=f"{wish.verb} {outcome.id}: {refused.message}",
                hint=refused.hint,
                retry_after=refused.retry_after,
                exit_code=refused.exit_code,
            )
        )
    if settings.as_json:
        print_json(_plain(outcome))
    else:
        say(_line(wish, outcome))
    return Exit.OK


def tell_set(settings: Settings, wish: Act, acted: Acted) -> Exit:
    number = acted.done + acted.refused
    if settings.as_json:
        print_each(map(_plain, acted.outcomes))
    else:
        for outcome in acted.outcomes:
            say(_line(wish, outcome))
        if acted.outcomes:
            say(f"{wish.verb}: {acted.done:,} of {number:,} done")
        else:
            say(f"{wish.verb}: no job matches, nothing was done")
    if others := number - len(acted.outcomes):
        remark(
            f"one answer holds no more than these; of {others:,} others"
            f" {acted.more_done:,} were done and {acted.more_refused:,} were not"
        )
    return Exit.FAILED if acted.refused else Exit.OK


def tell_redrive(settings: Settings, wish: Act, acted: Acted) -> Exit:
    """A small set is answered for at once; a large or a paced one is worked off from now on."""
    left_out = _left_out(wish, acted)
    refused = [outcome for outcome in acted.outcomes if not outcome.done]
    if settings.as_json:
        outcomes = [_plain(outcome) for outcome in acted.outcomes]
        print_json({"redrive": acted.redrive, "total": acted.total, "outcomes": outcomes})
    elif acted.redrive is None:
        say(f"{wish.verb}: no job matches, nothing was done")
    else:
        total = words.counted(acted.total, "job")
        done = f"{acted.total - len(refused):,} of {total} requeued" if acted.outcomes else total
        say(f"redrive {acted.redrive}: {done}")
        for outcome in refused:
            say(_line(wish, outcome))
        say(f"  `redrive redrives` shows how it goes, `redrive undo {acted.redrive}` takes it back")
    return Exit.FAILED if refused or left_out else Exit.OK


def _left_out(wish: Act, acted: Acted) -> int:
    """How many of the jobs that were named are none for a redrive; WrongState when all are."""
    if wish.where is not None or acted.total == len(wish.ids):
        return 0
    why = "the same with --dry-run says why"
    if acted.redrive is None:
        whom = f"job {wish.ids[0]} is not" if len(wish.ids) == 1 else "none of these jobs is"
        raise WrongState(f"{whom} dead or cancelled, nothing was done", hint=why)
    left_out = len(wish.ids) - acted.total
    remark(f"{left_out:,} of {len(wish.ids):,} are not dead or cancelled; {why}")
    return left_out


def _plain(outcome: Outcome) -> dict[str, Any]:
    id = outcome.id
    return {**plain(outcome), "id": int(id) if id.isdecimal() else id}


def _line(wish: Act, outcome: Outcome) -> str:
    if outcome.refused is not None:
        return f"{outcome.id}: not done, {outcome.refused.message}"
    state = words.state_of(outcome.state or "gone")
    if wish.verb in _ENDING and state == "running":
        what = "its running jobs are" if outcome.id.startswith("r") else "it is"
        return f"{outcome.id}: {wish.verb} asked, {what} being ended"
    news = _NEWS.get(state)
    return f"{outcome.id}: {_DONE[wish.verb]}" + (f", {news}" if news else "")
