"""How a wish is carried out: refused, asked back, sent, and its fate written down.

The order never changes: is the link good enough, is it possible at all, how much asking back
does it need, what would it do, did the operator say yes, send, tell. Dialogs and toasts are
handed in, so that all of this can be read and tested without a screen.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Literal

from msgspec.structs import replace

from redrive.client.refusals import AnswerLost
from redrive.errors import RedriveError
from redrive.lifecycle import LEASED
from redrive.models import Record
from redrive.protocol.queries import Fate as FateQuery
from redrive.protocol.queries import FateReply, Welcome
from redrive.protocol.rehearsals import PreviewReply
from redrive_tui.command_log import CommandLog
from redrive_tui.formatting import word_of
from redrive_tui.link_state import refusal
from redrive_tui.mirror import Mirror
from redrive_tui.source import Source
from redrive_tui.verbs import VERBS, Rung, Verb, applies, rung
from redrive_tui.wishes import (
    Fate,
    Ids,
    Matching,
    Named,
    Options,
    Selection,
    Wish,
    fate_of,
    preview_of,
    request_of,
)

UNDO_SECONDS = 8.0

Severity = Literal["information", "warning", "error"]
Say = Callable[[str, Severity], None]


class Intent(Record, frozen=True, kw_only=True):
    """A verb and what it is for, as a screen asks for it."""

    verb: str
    selection: Selection
    hidden: int = 0  # marked, but not in the list as it is filtered now
    whole: bool = False  # everything there is of its kind
    options: Options = Options()


class Question(Record, frozen=True, kw_only=True):
    """What a dialog has to show before anything is done."""

    intent: Intent
    wish: Wish
    rung: Rung
    preview: PreviewReply | None  # None for what is not about jobs
    despite: dict[str, int] = {}  # what speaks against it, when it has to be insisted upon
    welcome: Welcome
    at: int

    @property
    def number(self) -> int:
        """Of the jobs it would be done to; of what has no preview, or is a run, how many."""
        if self.preview is None or self.preview.runs:
            return self.wish.selection.number
        return self.preview.fits


Ask = Callable[[Question], Awaitable[Options | None]]


class Acting:
    def __init__(
        self,
        source: Source,
        mirror: Mirror,
        log: CommandLog,
        *,
        ask: Ask,
        say: Say,
        read_only: bool,
    ) -> None:
        self.source = source
        self.mirror = mirror
        self.log = log
        self.ask = ask
        self.say = say
        self.read_only = read_only
        self._is_asking = False
        self._undo: tuple[Wish, float] | None = None  # and the moment it is no longer offered

    async def carry_out(self, intent: Intent) -> Fate | None:
        """From the key to its fate; None when nothing was sent."""
        if refused := self._refusal() or _impossible(VERBS[intent.verb], intent.selection):
            self.say(refused, "error")
            return None
        try:
            wish = await self._asked_back(intent)
        except RedriveError as problem:
            self.say(str(problem), "error")
            return None
        if wish is None:
            return None
        if refused := self._refusal():  # the link may have broken while the dialog stood open
            self.say(refused, "error")
            return None
        return await self.send(wish)

    async def send(self, wish: Wish) -> Fate:
        self.log.sent(wish, self.mirror.now())
        fate = await self._answer(wish)
        self.log.settle(wish.key, fate)
        back = _opposite(wish, fate)
        until = self.mirror.clock.monotonic() + UNDO_SECONDS
        self._undo = (back, until) if back else None
        self.say(*_told(wish, fate, undoable=back is not None))
        return fate

    async def undo(self) -> None:
        """Take the last thing back, while it can be."""
        if self._undo is None or self.mirror.clock.monotonic() > self._undo[1]:
            self.say("nothing to undo", "information")
            return
        wish, self._undo = self._undo[0], None
        if refused := self._refusal():
            self.say(refused, "error")
        else:
            await self.send(wish)

    async def settle_unknown(self) -> None:
        """After a lost link: ask what became of everything that got no answer.

        What cannot be asked yet stays unknown, and is asked about another time.
        """
        for wish in self.log.unknown:
            try:
                reply: FateReply = await self.source.ask(FateQuery(request=wish.key))
            except RedriveError:
                return
            fate = _late_fate(reply)
            self.log.settle(wish.key, fate)
            self.say(
                f"{wish.words}: {fate.detail}", "information" if fate.word == "done" else "warning"
            )

    def _refusal(self) -> str | None:
        return self.only_looks or refusal(self.mirror.link, self.mirror.clock.monotonic())

    @property
    def only_looks(self) -> str | None:
        """Why nothing can ever be changed from here, if so."""
        welcome = self.mirror.welcome
        if self.read_only:
            return "this console may only look: it was started with --read-only"
        if welcome is not None and welcome.role == "viewer":
            return "this console may only look: your socket or key has the viewer role"
        return None

    async def _asked_back(self, intent: Intent) -> Wish | None:
        """The wish as the operator confirmed it."""
        welcome = self.mirror.welcome
        if welcome is None:
            return None
        selection = intent.selection
        wish = Wish(verb=intent.verb, selection=selection, options=intent.options)
        step = rung(
            VERBS[intent.verb],
            selection.number,
            protected=welcome.protected,
            whole=intent.whole,
            running=isinstance(selection, Ids) and LEASED in selection.expected.values(),
        )
        if step is Rung.AT_ONCE and wish.verb != "requeue":
            return wish
        preview = await self._preview(wish)
        despite: dict[str, int] = {}
        if preview is not None and not _does_something(preview):
            wish, preview, despite = await self._insisting(wish, preview)
            if not _does_something(preview):
                why = "; ".join(despite) or "nothing matches any more"
                self.say(f"{wish.words}: nothing to do: {why}", "warning")
                return None
            step = max(step, Rung.ASK)
        if step is Rung.AT_ONCE:
            return wish
        question = Question(
            intent=intent,
            wish=_frozen(wish, preview),
            rung=step,
            preview=preview,
            despite=despite,
            welcome=welcome,
            at=self.mirror.now(),
        )
        options = await self._answer_to(question)
        return None if options is None else replace(question.wish, options=options)

    async def _answer_to(self, question: Question) -> Options | None:
        """One question at a time: a key that is held down is no pile of them."""
        if self._is_asking:
            text = f"{question.wish.words}: not asked about, another question was open"
            self.log.note(text, self.mirror.now())
            return None
        self._is_asking = True
        try:
            return await self.ask(question)
        finally:
            self._is_asking = False

    async def _preview(self, wish: Wish) -> PreviewReply | None:
        query = preview_of(wish)
        preview: PreviewReply | None = await self.source.ask(query) if query else None
        return preview

    async def _insisting(
        self, wish: Wish, preview: PreviewReply
    ) -> tuple[Wish, PreviewReply, dict[str, int]]:
        """The same as it is possible if it is insisted upon; and what speaks against it."""
        despite = dict(preview.excluded)
        for run in preview.runs:
            if run.refused is not None:
                despite[run.refused] = 1
        for insisting in _INSISTING if wish.verb == "requeue" else ():
            insisted = replace(wish, options=replace(wish.options, **insisting))
            other = await self._preview(insisted)
            if other is not None and _does_something(other):
                return insisted, other, despite
        return wish, preview, despite

    async def _answer(self, wish: Wish) -> Fate:
        try:
            return fate_of(wish, await self.source.command(request_of(wish), key=wish.key))
        except AnswerLost as problem:
            return Fate(word="unknown", detail=problem.message)
        except RedriveError as problem:
            return Fate(word="refused", detail=str(problem))


# What a person may want all the same: to make anew what has results, to retry what is hopeless.
_INSISTING = ({"again": True}, {"force": True}, {"again": True, "force": True})


def _does_something(preview: PreviewReply) -> bool:
    return preview.fits > 0 or any(run.refused is None for run in preview.runs)


def _frozen(wish: Wish, preview: PreviewReply | None) -> Wish:
    """What matches becomes what matched at the preview: what arrives later is not meant."""
    if preview is None or not isinstance(wish.selection, Matching):
        return wish
    selection = replace(wish.selection, newest=preview.newest, number=preview.fits)
    return replace(wish, selection=selection)


def _told(wish: Wish, fate: Fate, *, undoable: bool) -> tuple[str, Severity]:
    undo = f"; z undoes it for {UNDO_SECONDS:.0f} s" if undoable else ""
    match fate.word:
        case "done":
            # What the daemon says of a thing with a name begins with that name.
            named = fate.detail.startswith(wish.selection.words)
            told = fate.detail if named else f"{wish.selection.words}: {fate.detail}"
            return f"{told}{undo}", "information"
        case "unknown":
            return f"{wish.words}: outcome unknown, asking when the link is back", "warning"
        case "partly":
            return f"{wish.words}: {fate.detail}{undo}", "warning"
        case _:
            return f"{wish.words}: {fate.detail}", "error"


def _late_fate(reply: FateReply) -> Fate:
    if not reply.known:
        return Fate(word="refused", detail="the daemon never got it; nothing was done")
    if reply.refusal:
        return Fate(word="refused", detail=reply.refusal)
    return Fate(word="done", detail="it was done")


def _impossible(verb: Verb, selection: Selection) -> str | None:
    """Why a verb cannot be done to the one job it is for; sets are sorted out by the daemon."""
    if not isinstance(selection, Ids) or len(selection.ids) != 1:
        return None
    one = selection.ids[0]
    state = selection.expected.get(one)
    if state is None or applies(verb, state):
        return None
    allowed = " or ".join(sorted(word_of(each) for each in verb.states))
    return f"job {one} is {word_of(state)}; {verb.label} is for jobs that are {allowed}"


def _opposite(wish: Wish, fate: Fate) -> Wish | None:
    """What would take back what was done of a wish; None when nothing does."""
    if fate.word not in ("done", "partly") or not fate.changed:
        return None
    if fate.redrive is not None:
        return Wish(verb="undo", selection=Named(kind="redrive", name=str(fate.redrive)))
    opposite = VERBS[wish.verb].undone_by
    if opposite is None or isinstance(wish.selection, Matching):
        return None
    selection = wish.selection
    if isinstance(selection, Ids):
        selection = Ids(ids=tuple(id for id in selection.ids if id in fate.done))
    return Wish(verb=opposite, selection=selection)
