"""Works off redrives: a canary first, at a pace, watched, stopped when too many fail again.

Every decision is made from the counts in the store and what has settled since; a restart
goes on with both. Of several nodes the leader works them off, and finds in the rows what has
ended on others.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Container, Sequence

from redrive.clock import SECOND
from redrive.errors import NotFound, WrongState
from redrive.protocol.rows import RedriveRow
from redrived.engine.definitions import Definitions, parse_limit
from redrived.engine.timers import Timers
from redrived.service import Loop
from redrived.store import redrives
from redrived.store.actions import Acted
from redrived.store.redrives import Change, Chosen, NewRedrive, Portion, Settled
from redrived.store.store import Store
from redrived.store.undo import undo
from redrived.store.unit import Landed

PORTION = 1_000  # jobs in one write
SWEEP = 1.0  # seconds between looks at what other nodes have ended
ENOUGH = 5  # ends seen before a share of failures means anything

log = logging.getLogger(__name__)


class Redrives(Loop):
    """Used by the main loop only."""

    def __init__(
        self,
        store: Store,
        definitions: Definitions,
        timers: Timers,
        is_leader: Callable[[], bool],
    ) -> None:
        super().__init__()
        self.definitions = definitions
        self._store = store
        self._is_leader = is_leader
        self._timers = timers
        self._under_way: dict[int, int] = {}  # requeued job → its redrive
        self._settled: list[Settled] = []
        self._next_at: dict[int, int] = {}  # when the pace of a redrive lets the next one through

    async def start(self) -> None:
        for row in await self._store.read(redrives.active):
            for job in await self._store.read(redrives.under_way, row.id):
                self._under_way[job] = row.id
        self._store.landed.append(self._look)
        # Last: what an earlier daemon left is being settled, and may end at any moment of this.
        self._settled += await self._store.read(redrives.ended)
        if not self._store.database.is_sqlite:
            self._timers.every("redrives", SWEEP, self.wake)
        await super().start()
        self.wake()

    # ---- what operators ask ------------------------------------------------------------------

    async def begin(self, wish: NewRedrive) -> Chosen:
        """Choose the set; it is worked off from now on."""
        return await self._store.submit(redrives.create, wish)

    async def turns(self, id: int) -> list[Acted]:
        """Work off all of a small one now, and say what became of each."""
        row = await self._get(id)
        acted: list[Acted] = []
        while portion := await self.requeue(row, PORTION):
            acted += portion
        self.wake()
        return acted

    async def undo(self, id: int, by: str) -> int:
        await self._get(id)
        undone = await self._store.submit(undo, (id, by))
        self._forget(id)
        return undone

    async def control(self, id: int, verb: str, by: str, pace: str | None = None) -> None:
        """Pause, resume or stop one that is under way; or give it another pace."""
        row = await self._get(id)
        if row.state not in redrives.ACTIVE:
            raise WrongState(f"redrive {id} is {row.state}", hint="only one under way can change")
        state = {"pause": "paused", "resume": _resumed(row), "stop": "stopped"}[verb]
        event = {"pause": "redrive_paused", "resume": "redrive_resumed", "stop": "redrive_stopped"}
        options = {**row.options, "pace": pace} if pace is not None else None
        finished = verb == "stop"
        await self._store.submit(
            redrives.change,
            Change(
                redrive=id,
                state=state,
                event=event[verb],
                by=by,
                options=options,
                finished=finished,
            ),
        )
        self.wake()

    async def _get(self, id: int) -> RedriveRow:
        row = await self._store.read(redrives.get, id)
        if row is None:
            raise NotFound(f"there is no redrive {id}", hint="`redrive redrives` lists them")
        return row

    # ---- working off -------------------------------------------------------------------------

    async def run_once(self) -> bool:
        await self._note_settled()
        if not self._is_leader():
            self._under_way.clear()  # the leader watches them, and keeps their pace
            self._next_at.clear()
            return False
        again = False
        active = await self._store.read(redrives.active)
        if not self._store.database.is_sqlite:  # what ends at other nodes is not heard here
            self._keep({row.id for row in active})
        for row in active:
            again = await self._advance(row) or again
        return again

    async def _advance(self, row: RedriveRow) -> bool:
        """The next step of one redrive; True if there is another at once."""
        if await self._stop_if_failing(row):
            return False
        if row.state != "running":
            self._next_at.pop(row.id, None)  # a pause is not made up for
        match row.state:
            case "canary":
                return await self._canary(row)
            case "running":
                return await self._requeue_some(row)
            case "watching":
                await self._finish_if_over(row)
                return False
            case _:
                return False

    async def _canary(self, row: RedriveRow) -> bool:
        missing = _canary_of(row) - row.requeued  # one that was refused has shown nothing
        if missing > 0 and await self.requeue(row, missing):
            return True
        if not row.requeued:  # nothing has passed where nothing has run
            why = "none of its jobs could be requeued"
            await self._end(row, "stopped", "redrive_stopped", why)
            return False
        ended = row.succeeded + row.failed
        if ended < row.requeued:
            return False
        if row.failed:
            why = f"the canary failed: {row.failed} of {ended}"
            await self._end(row, "stopped", "redrive_stopped", why)
            return False
        await self._store.submit(
            redrives.change, Change(redrive=row.id, state="running", event="redrive_canary_passed")
        )
        return True

    async def _requeue_some(self, row: RedriveRow) -> bool:
        pace = parse_limit(row.options.get("pace"))
        allowed = self._unpaced(row) if pace is None else await self._paced(row, *pace)
        if allowed <= 0:
            return False
        acted = await self.requeue(row, min(PORTION, allowed))
        if acted:
            if pace is not None:
                count, per = pace
                self._next_at[row.id] += sum(each.refused is None for each in acted) * per // count
            return True
        await self._store.submit(
            redrives.change, Change(redrive=row.id, state="watching", event="redrive_requeued")
        )
        return True

    def _unpaced(self, row: RedriveRow) -> int:
        if row.options.get("stop_at") is None:
            return PORTION
        # What is judged by its ends must not be under way as a whole before the first.
        ended = row.succeeded + row.failed
        return max(ENOUGH, ended) - (row.requeued - ended)

    async def _paced(self, row: RedriveRow, count: int, per: int) -> int:
        """How many its pace lets through now; where it lets none, the timer knows when."""
        every = per // count
        now = self._store.now()
        next_at = self._next_at.get(row.id)
        if next_at is None:  # it begins, or goes on: at its pace since the last one
            last = await self._store.read(redrives.last_requeued, row.id)
            next_at = max(now, (last or 0) + every)
        # Of the time in which the machine stood still, or by which its clock was set, no more than
        # a moment is made up for.
        self._next_at[row.id] = next_at = min(max(next_at, now - SECOND), now + every)
        if next_at > now:
            wake_at = self._store.by_our_clock(max(next_at, now + SECOND // 100))
            self._timers.at(f"redrive {row.id}", wake_at, self.wake)
            return 0
        return (now - next_at) * count // per + 1

    async def requeue(self, row: RedriveRow, n: int) -> list[Acted]:
        """The next `n` of a redrive; an empty answer means that all have had their turn."""
        acted = await self._store.submit(
            redrives.requeue_portion,
            Portion(
                redrive=row.id,
                n=n,
                by=row.by,
                force=bool(row.options.get("force")),
                manual=self.definitions.config.manual_retry,
                reason=row.options.get("reason"),
            ),
        )
        for each in acted:
            if each.refused is None:
                self._under_way[each.id] = row.id
        return acted

    async def _stop_if_failing(self, row: RedriveRow) -> bool:
        limit = row.options.get("stop_at")
        ended = row.succeeded + row.failed
        if limit is None or row.state == "paused" or ended < ENOUGH:
            return False
        if row.failed / ended < limit:
            return False
        why = f"{row.failed} of {ended} failed again, the limit is {limit:.0%}"
        await self._end(row, "stopped", "redrive_stopped", why)
        return True

    async def _finish_if_over(self, row: RedriveRow) -> None:
        if row.succeeded + row.failed >= row.requeued:
            await self._end(row, "done", "redrive_completed", None)

    async def _end(self, row: RedriveRow, state: str, event: str, why: str | None) -> None:
        await self._store.submit(
            redrives.change,
            Change(redrive=row.id, state=state, event=event, why=why, finished=True),
        )
        self._forget(row.id)

    def _forget(self, id: int) -> None:
        self._keep(set(self._under_way.values()) - {id})
        self._next_at.pop(id, None)

    def _keep(self, ids: Container[int]) -> None:
        self._under_way = {job: of for job, of in self._under_way.items() if of in ids}

    # ---- watching ----------------------------------------------------------------------------

    def _look(self, landed: Landed) -> None:
        if not self._under_way:
            return
        for _, kind, job, *_ in landed.events:
            outcome = _ENDS.get(kind)
            if outcome is not None and job in self._under_way:
                self._settled.append(Settled(self._under_way.pop(job), job, outcome))
        if self._settled:
            self.wake()

    async def _note_settled(self) -> None:
        settled, self._settled = self._settled, []
        if self._is_leader() and not self._store.database.is_sqlite:
            settled = await self._store.read(redrives.ended)  # those of other nodes as well
        if settled:
            await asyncio.gather(*self._submit(settled))

    def _submit(self, settled: Sequence[Settled]) -> list[asyncio.Future[None]]:
        return [self._store.submit(redrives.settle, each, must_land=True) for each in settled]


def _canary_of(row: RedriveRow) -> int:
    return int(row.options.get("canary") or 0)


def _resumed(row: RedriveRow) -> str:
    """Where a redrive goes on; one that was paused over its canary still waits for that."""
    canary = _canary_of(row)
    return "canary" if canary and row.requeued <= canary else "running"


_ENDS = {
    "action_completed": "done",
    "step_retry_exhausted": "dead",
    "job_cancelled": "dead",
    "job_killed": "dead",
    "step_failed_terminal": "dead",  # also when its data could not be cleared before
}
