"""What operators do to jobs: one table of verbs, set-based, an answer for every job.

A verb changes the rows that are in a state it fits and says of every other one why not. What
is running cannot be changed here: the wish is written down (`ending`), so that it survives the
daemon, and the engine ends the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

from msgspec import Struct
from sqlalchemy import Connection

from redrive.config.sections import ManualRetry
from redrive.errors import NotFound, RedriveError, WrongState
from redrive.instants import iso
from redrive.lifecycle import JobState, Move, allowed, word_of
from redrive.manual import refusal
from redrive.pipelines.states import StepState
from redrived.store.database import Database
from redrived.store.enqueue import living
from redrived.store.keys import free_keys
from redrived.store.lives import Life, give_life
from redrived.store.progress import Settled, clearings, forgotten, revived, settled, stand_back
from redrived.store.removal import remove_jobs
from redrived.store.revivals import Revivals
from redrived.store.tables import HELD, KEY
from redrived.store.unit import Unit


class Act(Struct, frozen=True, kw_only=True):
    """A verb, the jobs it is for, and who wants it."""

    verb: str
    jobs: Sequence[int]
    by: str
    force: bool = False
    manual: ManualRetry = ManualRetry()
    expected: str | None = None  # only jobs still in this state
    data: dict[str, Any] = {}  # for the events, beside who asked


class Acted(Struct, frozen=True, kw_only=True):
    """What became of one job. `running`: its attempt has to be ended first, by lease.

    Why it was refused is said without its id, which whoever tells it knows.
    """

    id: int
    state: str | None = None
    running: int | None = None
    refused: RedriveError | None = None


class Row(Struct, frozen=True):
    id: int
    queue: str
    task: str
    state: JobState
    waits: str | None
    lease: int
    attempts: int
    life: int
    run_id: int | None
    limit_key: str | None
    available_at: int
    reason: str | None
    manual_retries: int
    manual_at: int | None
    unique_key: str | None
    scheduled_for: int | None
    last_attempt_at: int | None
    operation: str | None
    ending: str | None


def act(unit: Unit, acts: Sequence[Act]) -> list[list[Acted]]:
    return [_act(unit, wish) for wish in acts]


def rehearse(connection: Connection, database: Database, now: int, wish: Act) -> list[Acted]:
    """What `act` would answer now, with nothing changed."""
    answers, chosen = _choose(Unit(connection, database, "", now), wish, locked=False)
    answers.update((row.id, Acted(id=row.id, state=row.state)) for row in chosen)
    return [answers[id] for id in wish.jobs]


def _act(unit: Unit, wish: Act) -> list[Acted]:
    answers, chosen = _choose(unit, wish)
    if chosen:
        answers.update((answer.id, answer) for answer in VERBS[wish.verb].run(unit, wish, chosen))
    return [answers[id] for id in wish.jobs]


def _choose(unit: Unit, wish: Act, *, locked: bool = True) -> tuple[dict[int, Acted], list[Row]]:
    """Those it will be done to, and for the others the answer why not."""
    rows = _read(unit, wish.jobs, locked=locked)
    revives = VERBS[wish.verb].move is Move.REQUEUE
    keys = [row.unique_key for row in rows.values() if revives and row.unique_key is not None]
    bearers = {key: place.id for key, place in living(unit, keys).items()}
    is_for_ended = VERBS[wish.verb].move in (Move.REQUEUE, Move.DISCARD)
    cleared_by = clearings(unit, rows) if is_for_ended else {}
    of_runs = {id: row.run_id for id, row in rows.items() if revives and row.run_id is not None}
    revivals = Revivals(unit, of_runs, locked=locked)
    answers: dict[int, Acted] = {}
    chosen: list[Row] = []
    for id in dict.fromkeys(wish.jobs):
        row = rows.get(id)
        refused = _refusal(unit, wish, id, row, bearers)
        if refused is None and id in cleared_by:
            refused = _is_cleared(cleared_by[id])
        if refused is None:
            refused = revivals.refusal(id)
        if row is None or refused is not None:
            state = row.state if row else None
            answers[id] = Acted(id=id, state=state, refused=refused)
        else:
            chosen.append(row)
            if revives and row.unique_key is not None:
                bearers[row.unique_key] = id
    return answers, chosen


def _read(unit: Unit, ids: Sequence[int], *, locked: bool) -> dict[int, Row]:
    lock = " FOR UPDATE OF jobs" if locked and not unit.database.is_sqlite else ""
    names = ", ".join(f"jobs.{name}" for name in Row.__struct_fields__)
    found = unit.over(
        [(id,) for id in sorted(set(ids))],
        f"SELECT {names} FROM {unit.database.rows('job bigint')}"
        f" JOIN jobs ON jobs.id = r.job{lock}",
    )
    return {row[0]: Row(row[0], row[1], row[2], JobState(row[3]), *row[4:]) for row in found}


def _refusal(
    unit: Unit, wish: Act, id: int, row: Row | None, bearers: Mapping[str, int]
) -> RedriveError | None:
    if row is None:
        return NotFound("there is no such job", hint="`redrive jobs` lists them")
    verb = VERBS[wish.verb]
    if wish.expected is not None and row.state != wish.expected:
        return WrongState(f"it is {word_of(row.state)} by now", hint="it was left alone")
    if row.state == JobState.LEASED and verb.ends_running:
        return _is_stopped(row) if wish.verb == "restart" else None
    if not allowed(verb.move, row.state):
        return WrongState(
            f"it is {word_of(row.state)}; {wish.verb} is for jobs that are {verb.fits}",
            hint=f"`redrive show {id}` says what can be done",
        )
    if verb.move is Move.RELEASE and row.waits != HELD:
        return WrongState("it is not held", hint=f"`redrive why {id}` says what it waits for")
    if verb.move is Move.HOLD and row.waits == HELD:
        return WrongState("it is held already", hint=f"`redrive release {id}` lets it go")
    if verb.move is Move.RUN_NOW and row.waits == HELD:
        return WrongState("it is held", hint=f"`redrive release {id}` lets it go")
    if verb.move is Move.REQUEUE:
        bearer = None if row.unique_key is None else bearers.get(row.unique_key)
        if bearer is not None:
            return WrongState(
                f"job {bearer} lives under its unique key",
                hint=f"wait for it, or `redrive cancel {bearer}` first",
            )
        return refusal(
            reason=row.reason,
            manual_retries=row.manual_retries,
            last_manual_at=row.manual_at,
            now=unit.now,
            rules=wish.manual,
            force=wish.force,
        )
    return None


def _is_stopped(row: Row) -> WrongState | None:
    """A stop that is under way wins over a restart."""
    if row.ending not in ("cancel", "kill"):
        return None
    return WrongState(
        f"it is being ended, {row.ending} was asked",
        hint=f"`redrive requeue {row.id}` runs it again once it has ended",
    )


def _is_cleared(by: int) -> WrongState:
    return WrongState(
        f"it is requeued already: job {by} clears the data of its step first",
        hint=f"`redrive why {by}` says what that waits for, `redrive cancel {by}` ends it",
    )


# ---- the verbs ---------------------------------------------------------------------------


def _requeue(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    forced = {"forced": True} if wish.force else {}
    of_runs = [(row.run_id, row.id) for row in rows if row.run_id is not None]
    waiting = revived(unit, of_runs, wish.by, {**wish.data, **forced})
    now = [row for row in rows if row.id not in waiting]
    lives = [
        Life(row.id, unit.rank(row.queue, row.operation), available_at=_time_of(row)) for row in now
    ]
    waits = give_life(unit, lives)
    for row, wait in zip(now, waits, strict=True):
        data = {"was": row.state, "life": row.life + 1, "manual_retries": row.manual_retries + 1}
        _say(unit, wish, row, "job_requeued", JobState.QUEUED, 0, {**data, **forced})
        unit.moved(row.queue, row.task, row.state, JobState.QUEUED)
        unit.waiting(row.queue, row.task, JobState.QUEUED, wait)
    return [
        Acted(id=row.id, state=StepState.CLEARING if row.id in waiting else JobState.QUEUED)
        for row in rows
    ]


def _time_of(row: Row) -> int | None:
    """What was cancelled before its time still waits for it."""
    return row.scheduled_for if row.last_attempt_at is None else None


def _cancel(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    running = [row for row in rows if row.state is JobState.LEASED]
    waiting = [row for row in rows if row.state is not JobState.LEASED]
    kind = VERBS[wish.verb].event
    unit.over(
        [(row.id,) for row in waiting],
        "UPDATE jobs SET state = 'cancelled', waits = NULL, finished_at = :now"
        f" FROM {unit.database.rows('job bigint')} WHERE jobs.id = r.job",
        now=unit.now,
    )
    for row in waiting:
        _say(unit, wish, row, kind, JobState.CANCELLED, row.attempts, {"was": row.state})
        unit.moved(row.queue, row.task, row.state, JobState.CANCELLED)
        unit.waiting(row.queue, row.task, row.state, row.waits, -1)
    _leave_lanes(unit, waiting)
    settled(
        unit,
        [
            Settled(row.run_id, row.id, JobState.CANCELLED, unit.now)
            for row in waiting
            if row.run_id is not None
        ],
    )
    return [
        *(Acted(id=row.id, state=JobState.CANCELLED) for row in waiting),
        *_wish_end(unit, wish, running),
    ]


_NO_WEAKER = {
    "restart": "'restart', 'cancel', 'kill'",
    "cancel": "'cancel', 'kill'",
    "kill": "'kill'",
}


def _wish_end(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    # A stop wins over a restart that is under way, and over a stop with more patience; of two
    # alike the first is obeyed, and told with who asked for it and why.
    unit.over(
        [(row.id,) for row in rows],
        "UPDATE jobs SET ending = :verb, ending_by = :by, ending_reason = :reason"
        f" FROM {unit.database.rows('job bigint')} WHERE jobs.id = r.job"
        f" AND (jobs.ending IS NULL OR jobs.ending NOT IN ({_NO_WEAKER[wish.verb]}))",
        verb=wish.verb,
        by=wish.by,
        reason=wish.data.get("reason"),
    )
    return [Acted(id=row.id, state=row.state, running=row.lease) for row in rows]


def _run_now(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    unit.over(
        [(row.id,) for row in rows],
        "UPDATE jobs SET waits = 'ready', available_at = :now"
        f" FROM {unit.database.rows('job bigint')} WHERE jobs.id = r.job",
        now=unit.now,
    )
    for row in rows:
        _say(
            unit,
            wish,
            row,
            "job_run_now",
            row.state,
            row.attempts,
            {"was_due": iso(row.available_at)},
        )
        unit.waiting(row.queue, row.task, row.state, row.waits, -1)
    unit.made_ready()
    return [Acted(id=row.id, state=row.state) for row in rows]


def _hold(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    unit.over(
        [(row.id,) for row in rows],
        "UPDATE jobs SET waits = 'held'"
        f" FROM {unit.database.rows('job bigint')} WHERE jobs.id = r.job",
    )
    for row in rows:
        _say(unit, wish, row, "job_held", row.state, row.attempts, {})
        unit.waiting(row.queue, row.task, row.state, row.waits, -1)
        unit.waiting(row.queue, row.task, row.state, HELD)
    _leave_lanes(unit, rows)
    return [Acted(id=row.id, state=row.state) for row in rows]


def _release(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    waits = [unit.waits(row.available_at) for row in rows]
    unit.over(
        [(row.id, wait) for row, wait in zip(rows, waits, strict=True)],
        "UPDATE jobs SET waits = r.waits"
        f" FROM {unit.database.rows('job bigint', 'waits')} WHERE jobs.id = r.job",
    )
    stand_back(unit, [row.id for row in rows if row.run_id is not None])
    for row, wait in zip(rows, waits, strict=True):
        _say(unit, wish, row, "job_released", row.state, row.attempts, {})
        unit.waiting(row.queue, row.task, row.state, HELD, -1)
        unit.waiting(row.queue, row.task, row.state, wait)
    return [Acted(id=row.id, state=row.state) for row in rows]


def _discard(unit: Unit, wish: Act, rows: Sequence[Row]) -> list[Acted]:
    # A job's events live as long as its row; what is left is one line without a job.
    remove_jobs(unit, [row.id for row in rows])
    for row in rows:
        data = {"id": row.id, "task": row.task, "queue": row.queue, "was": row.state}
        unit.emit("job_discarded", run=row.run_id, data={"by": wish.by, **wish.data, **data})
        unit.moved(row.queue, row.task, row.state, None)
    forgotten(unit, [(row.run_id, row.id) for row in rows if row.run_id is not None])
    return [Acted(id=row.id) for row in rows]


def _leave_lanes(unit: Unit, rows: Sequence[Row]) -> None:
    """Jobs that stood ready leave their place at the head of their key to the next."""
    free_keys(unit, [row.limit_key for row in rows if row.limit_key and row.waits != KEY])


def _say(
    unit: Unit,
    wish: Act,
    row: Row,
    kind: str,
    state: JobState,
    attempts: int,
    data: dict[str, Any],
) -> None:
    unit.emit(
        kind,
        job=row.id,
        run=row.run_id,
        state=state,
        attempts=attempts,
        data={"by": wish.by, **data, **wish.data},
    )


class Verb(Struct, frozen=True, kw_only=True):
    move: Move
    event: str
    fits: str  # in words, for the refusal
    run: Callable[[Unit, Act, Sequence[Row]], list[Acted]]
    ends_running: bool = False


VERBS: Mapping[str, Verb] = MappingProxyType(
    {
        "requeue": Verb(
            move=Move.REQUEUE, event="job_requeued", fits="dead or cancelled", run=_requeue
        ),
        "cancel": Verb(
            move=Move.CANCEL,
            event="job_cancelled",
            fits="queued, retrying or running",
            run=_cancel,
            ends_running=True,
        ),
        "kill": Verb(
            move=Move.CANCEL,
            event="job_killed",
            fits="queued, retrying or running",
            run=_cancel,
            ends_running=True,
        ),
        "restart": Verb(
            move=Move.GIVE_BACK,
            event="job_restarted",
            fits="running",
            run=_wish_end,
            ends_running=True,
        ),
        "run-now": Verb(
            move=Move.RUN_NOW, event="job_run_now", fits="queued or retrying", run=_run_now
        ),
        "hold": Verb(move=Move.HOLD, event="job_held", fits="queued or retrying", run=_hold),
        "release": Verb(move=Move.RELEASE, event="job_released", fits="held", run=_release),
        "discard": Verb(
            move=Move.DISCARD, event="job_discarded", fits="dead or cancelled", run=_discard
        ),
    }
)
