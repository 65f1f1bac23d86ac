"""What an operator asked for, and what became of it.

A selection is a value: these ids, or all that match a filter as of one moment, or a name.
It travels as such, so that a list that changes meanwhile changes nothing about what is
meant. Every wish has a key made at the keypress; asking twice with it does the thing once.
"""

from __future__ import annotations

import shlex
from typing import Literal
from uuid import uuid4

from msgspec import field

from redrive.lifecycle import JobState
from redrive.models import Record
from redrive.protocol import commands
from redrive.protocol.commands import Acted, Done, Outcome
from redrive.protocol.envelope import Request
from redrive.protocol.rehearsals import Preview
from redrive_tui.formatting import plural
from redrive_tui.verbs import VERBS


class Ids(Record, frozen=True, kw_only=True, tag=True):
    """These jobs or runs, as they were seen."""

    ids: tuple[str, ...]  # "12", "r7"
    expected: dict[str, JobState] = {}  # what the operator saw them in

    @property
    def number(self) -> int:
        return len(self.ids)

    @property
    def words(self) -> str:
        if len(self.ids) != 1:
            return plural(len(self.ids), "job")
        one = self.ids[0]
        return f"run {one}" if one.startswith("r") else f"job {one}"


class Matching(Record, frozen=True, kw_only=True, tag=True):
    """All jobs that match, up to the newest of the moment it was asked: later ones are not meant."""

    where: str
    number: int
    newest: int | None = None  # known once the daemon has previewed it

    @property
    def words(self) -> str:
        return plural(self.number, "job")


class Named(Record, frozen=True, kw_only=True, tag=True):
    """A queue, a schedule, a node, a redrive."""

    kind: Literal["queue", "schedule", "node", "redrive"]
    name: str

    @property
    def number(self) -> int:
        return 1

    @property
    def words(self) -> str:
        return f"{self.kind} {self.name}"


Selection = Ids | Matching | Named


class Options(Record, frozen=True, kw_only=True):
    reason: str = ""
    step: str | None = None
    canary: int = 0
    pace: str = ""  # "50/min"
    stop_at: float = 0.0  # the share of failures at which the rest is left alone; 0: none is
    force: bool = False
    again: bool = False  # although it has results


class Wish(Record, frozen=True, kw_only=True):
    verb: str
    selection: Selection
    options: Options = Options()
    key: str = field(default_factory=lambda: uuid4().hex)

    @property
    def words(self) -> str:
        return f"{VERBS[self.verb].label} {self.selection.words}"


FateWord = Literal["sent", "done", "partly", "refused", "unknown"]


class Fate(Record, frozen=True, kw_only=True):
    """Where a wish stands. `unknown` is honest: the link broke before the answer came."""

    word: FateWord
    detail: str = ""
    done: frozenset[str] = frozenset()  # the ids that were done
    redrive: int | None = None  # a set worked off in the background; can be undone
    changed: bool = True  # False: everything was so already


def fate_of(wish: Wish, reply: Acted | Done) -> Fate:
    """What the daemon's answer means for a wish."""
    past = VERBS[wish.verb].past
    if isinstance(reply, Done):
        changed = reply.data.get("changed", True) is not False
        return Fate(word="done", detail=reply.text or past, changed=changed)
    done = frozenset(outcome.id for outcome in reply.outcomes if outcome.done)
    if reply.redrive is not None:
        some = "" if reply.total == wish.selection.number else f"{reply.total:,} of them "
        detail = f"{some}under way as redrive {reply.redrive}"
        return Fate(word="done", detail=detail, done=done, redrive=reply.redrive)
    refused = [outcome for outcome in reply.outcomes if not outcome.done]
    if not reply.refused:
        return Fate(word="done", detail=past, done=done)
    told = _reasons(wish, refused, reply.refused)
    if not reply.done:
        return Fate(word="refused", detail=told)
    return Fate(word="partly", detail=f"{reply.done:,} {past}; not {told}", done=done)


def _reasons(wish: Wish, refused: list[Outcome], number: int) -> str:
    """Why the first was refused, and of how many more the same can be said."""
    if not refused:
        return f"{number:,} others"  # of whom the answer had no room to speak
    first = refused[0]
    told = first.refused.message if first.refused else "not done"
    if wish.selection.number > 1:
        told = f"{first.id}: {told}"
    return told + (f", and {number - 1:,} more" if number > 1 else "")


def request_of(wish: Wish) -> Request:
    """The wish as the protocol has it."""
    options = wish.options
    match wish.selection:
        case Named(kind="redrive", name=name) if wish.verb == "undo":
            return commands.Undo(redrive=int(name))
        case Named(kind="redrive", name=name):
            return commands.ControlRedrive(redrive=int(name), verb=wish.verb)
        case Named(kind="node", name=name):
            return commands.Drain(node=name)
        case Named(kind=kind, name=name):
            return _on_name(wish.verb, kind, name, options)
        case Ids(ids=ids, expected=expected):
            states = set(expected.values())
            return commands.Act(
                verb=wish.verb,
                ids=list(ids),
                expected=states.pop() if len(states) == 1 else None,
                force=options.force,
                again=options.again,
                from_step=options.step,
                canary=options.canary or None,
                pace=options.pace or None,
                stop_at=options.stop_at or None,
                reason=options.reason or None,
            )
        case Matching(where=where, newest=newest):
            return commands.Act(
                verb=wish.verb,
                where=where,
                newest=newest,
                force=options.force,
                canary=options.canary or None,
                pace=options.pace or None,
                stop_at=options.stop_at or None,
                reason=options.reason or None,
            )


def parse_share(text: str) -> float | None:
    """`20%` or `0.2`; 0 for nothing, None for what is no share."""
    if not text:
        return 0.0
    try:
        share = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        return None
    return share if 0 < share <= 1 else None


def _on_name(verb: str, kind: str, name: str, options: Options) -> Request:
    if verb == "trigger":
        return commands.Trigger(schedule=name)
    if verb == "pause":
        return commands.PauseIt(name=f"{kind}:{name}", why=options.reason or None)
    return commands.ResumeIt(name=f"{kind}:{name}")


def preview_of(wish: Wish) -> Preview | None:
    """The question what a wish would do; None for what is not about jobs or runs."""
    match wish.selection:
        case Ids(ids=ids):
            return Preview(
                verb=wish.verb,
                ids=[int(one) for one in ids if one.isdecimal()],
                runs=[one for one in ids if not one.isdecimal()],
                from_step=wish.options.step,
                force=wish.options.force,
                again=wish.options.again,
            )
        case Matching(where=where):
            return Preview(verb=wish.verb, where=where, force=wish.options.force)
        case Named():
            return None


def command_line(wish: Wish) -> str:
    """The same wish, as a command."""
    options = wish.options
    words = ["redrive", wish.verb]
    match wish.selection:
        case Ids(ids=ids):
            words += ids
        case Matching(where=where):
            words += [
                "--where",
                where or "id>0",
            ]  # an empty filter may be a mistake, and is refused
        case Named(kind="node"):
            pass
        case Named(kind=kind, name=name) if wish.verb in ("pause", "resume"):
            words.append(f"{kind}:{name}")
        case Named(name=name):
            words.append(name)
    words += ["--from", options.step] if options.step else []
    words += ["--canary", str(options.canary)] if options.canary else []
    words += ["--pace", options.pace] if options.pace else []
    words += ["--stop-at", f"{options.stop_at:.0%}"] if options.stop_at else []
    words += ["--reason", options.reason] if options.reason else []
    words += ["--force"] if options.force else []
    words += ["--yes"] if options.again else []
    return shlex.join(words)
