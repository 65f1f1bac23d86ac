"""The speed of the store: enqueue, lease, finish, beat, lists and counts, as it grows.

One run measures redrive's store beside the same work done with the bare sqlite3 driver (row by
row, and with executemany), on tables of 10 thousand finished jobs, of a million, and of a
million sleeping retries. All stores take turns in each round; medians are shown; read ratios.
Everything is durable: WAL, synchronous=FULL. With `--postgresql URL` (an empty database) the
store is measured there too.

    PYTHONPATH=tests python bench/store.py [--rows 10000 1000000] [--sizes 1 100 1000] [--rounds 5]
"""

from __future__ import annotations

import argparse
import asyncio
import sqlite3
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from report import Report, at_most, options
from sqlalchemy import text

from redrive.clock import SECOND, SystemClock
from redrive.filters import parse
from redrived.api.jobs import order
from redrived.store import tallies
from redrived.store.beats import Beat, beat
from redrived.store.enqueue import NewJob, Order, enqueue
from redrived.store.leases import lease
from redrived.store.listing import listed
from redrived.store.picking import Berth, InHand, Room, TaskRules
from redrived.store.settle import Completed, complete
from redrived.store.store import Store

RULES = {"noop": TaskRules(pool="default", hand=1_000_000)}
LISTS = {
    "newest": "",
    "dead": "state:dead",
    "failing": "error:timeout",
    "one group": "state:dead group:f",
    "no group": "state:dead group:none",
    "not done": "!state:done",
    "running": "state:running node:bench",
    "one task": "task:noop",
    "no task": "task:none",
    "next due": "sort:next",
    "next retry": "state:retry queue:default sort:next",
    "due in a day": "next<1d sort:next",
}
TURN = 1_000  # jobs of one size in one turn
READS = 5  # times that each question is asked in a round


class Redrive:
    def __init__(self, name: str, url: str) -> None:
        self.name = name
        self.store = Store(url, SystemClock(), "bench")

    async def cycle(self, n: int) -> dict[str, float]:
        """Seconds for each step in the life of `n` jobs."""
        store, marks = self.store, [time.perf_counter()]
        new = [NewJob(task="noop", queue="default") for _ in range(n)]
        await store.submit(enqueue, Order(jobs=new))
        marks.append(time.perf_counter())
        share = (n + 0.5) / RULES["noop"].hand
        room = Room(slots=1, berths={"default": [Berth(0, share, empty=False)]}, tasks=RULES)
        hand: list[InHand] = list((await store.submit(lease, room)).picked.jobs())
        assert len(hand) == n
        marks.append(time.perf_counter())
        now = store.clock.now()
        beats = [store.submit(beat, Beat(job.id, job.lease, now)) for job in hand]
        await asyncio.gather(*beats)
        marks.append(time.perf_counter())
        done = [Completed(j.id, j.lease, now, now, j.attempt, j.queue, j.task) for j in hand]
        await store.submit(complete, done)
        marks.append(time.perf_counter())
        return spans(("enqueue", "lease", "beat", "finish"), marks)

    async def close(self) -> None:
        await self.store.close()


class Bare:
    """The rows and log lines of the same life, written with the driver and nothing else."""

    def __init__(self, name: str, path: Path, *, many: bool) -> None:
        self.name = name
        self.many = many
        self.db = sqlite3.connect(path, isolation_level=None)
        for pragma in ("synchronous = FULL", "cache_size = -32768", "wal_autocheckpoint = 4000"):
            self.db.execute(f"PRAGMA {pragma}")
        (self.last,) = self.db.execute("SELECT max(id) FROM jobs").fetchone()
        (self.seq,) = self.db.execute("SELECT max(seq) FROM events").fetchone()

    async def cycle(self, n: int) -> dict[str, float]:
        marks = [time.perf_counter()]
        now = time.time_ns() // 1000
        ids = range(self.last + 1, self.last + n + 1)
        self.last += n
        self._write(_INSERT, [(id, now, now, now) for id in ids], "step_started", now)
        marks.append(time.perf_counter())
        hand = self.db.execute(_READY, (n,)).fetchall()
        self._write(_LEASE, [(now, id) for (id, *_) in hand])
        marks.append(time.perf_counter())
        self._write(_BEAT, [(now, id) for (id, *_) in hand])
        marks.append(time.perf_counter())
        self._write(
            _FINISH,
            [(now, now, id) for (id, *_) in hand],
            "action_started",
            now,
            "action_completed",
        )
        marks.append(time.perf_counter())
        return spans(("enqueue", "lease", "beat", "finish"), marks)

    def _write(self, statement: str, rows: Sequence[tuple[int, ...]], *told: object) -> None:
        self.db.execute("BEGIN IMMEDIATE")
        self._run(statement, rows)
        kinds = [kind for kind in told if isinstance(kind, str)]
        events = [(kind, row[-1] if "action" in kind else row[0]) for row in rows for kind in kinds]
        now = time.time_ns() // 1000
        self._run(
            _EVENT, [(self.seq + n, now, kind, job) for n, (kind, job) in enumerate(events, 1)]
        )
        self.seq += len(events)
        self.db.execute("COMMIT")

    def _run(self, statement: str, rows: Sequence[tuple[object, ...]]) -> None:
        if self.many:
            self.db.executemany(statement, rows)
            return
        for row in rows:
            self.db.execute(statement, row)

    async def close(self) -> None:
        self.db.close()


_INSERT = (
    "INSERT INTO jobs (id, created_at, life_started_at, available_at, task, queue, priority, rank,"
    " state, waits, attempts, max_attempts, life, lease, executions, lost, unknowns,"
    " manual_retries, interruptions, snoozes, args) VALUES (?, ?, ?, ?, 'noop', 'default', 0, 0,"
    " 'queued', 'ready', 0, 1, 1, 0, 0, 0, 0, 0, 0, 0, '{}')"
)
_READY = (
    "SELECT id, args, lease FROM jobs WHERE waits = 'ready' AND queue = 'default' AND task = 'noop'"
    " ORDER BY rank, priority DESC, available_at, id LIMIT ?"
)
_LEASE = (
    "UPDATE jobs SET state = 'leased', waits = NULL, leased_from = state, attempts = attempts + 1,"
    " lease = lease + 1, executions = executions + 1, node = 'bench', last_attempt_at = ?"
    " WHERE id = ?"
)
_BEAT = "UPDATE jobs SET heartbeat_at = ? WHERE id = ? AND state = 'leased'"
_FINISH = (
    "UPDATE jobs SET state = 'done', started_at = ?, finished_at = ? WHERE id = ?"
    " AND state = 'leased'"
)
_EVENT = (
    "INSERT INTO events (seq, at, type, job, attempt, state, attempts) VALUES"
    " (?, ?, ?, ?, 1, 'done', 1)"
)


def spans(names: Sequence[str], marks: Sequence[float]) -> dict[str, float]:
    return {name: b - a for name, a, b in zip(names, marks[:-1], marks[1:], strict=True)}


async def make(path: Path, rows: int, kind: str) -> None:
    """A store with so many jobs that are done, or that sleep until their next attempt."""
    store = Store(f"sqlite:///{path}", SystemClock(), "bench")
    await store.open()
    with store.database.writers.connect() as connection, connection.begin():
        connection.execute(text(_JOBS), {"rows": rows, "asleep": kind == "asleep"})
        connection.execute(text(_EVENTS), {"rows": rows})
        connection.execute(text(_TALLIES))
        connection.execute(text(_COUNTERS), {"rows": rows})
    await store.close()


_NUMBERS = """
    WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < :rows)
"""
# One in a hundred is dead: enough to fill a page; the sleeping ones are due over many days.
_JOBS = f"""{_NUMBERS}
    INSERT INTO jobs (id, task, queue, priority, rank, state, waits, attempts, max_attempts, life,
        lease, executions, available_at, created_at, life_started_at, started_at, finished_at,
        lost, unknowns, manual_retries, interruptions, snoozes, args, error_type, fingerprint)
    SELECT n, 'noop', 'default', 0, 0,
        CASE WHEN n % 100 = 0 THEN 'dead' WHEN :asleep THEN 'retry' ELSE 'done' END,
        CASE WHEN n % 100 AND :asleep THEN 'due' END, 1, 3, 1, 1, 1,
        4000000000000000 + n * 7919 % 1000003 * {SECOND}, n, n, n,
        CASE WHEN n % 100 = 0 OR NOT :asleep THEN n END, 0, 0, 0, 0, 0, '{{"n": 1}}',
        CASE WHEN n % 100 = 0 THEN 'timeout' END, CASE WHEN n % 100 = 0 THEN 'f' END
    FROM numbers
"""
_EVENTS = f"""{_NUMBERS},
    kinds(k, kind) AS (VALUES (0, 'step_started'), (1, 'action_started'), (2, 'action_completed'))
    INSERT INTO events (seq, at, type, job, attempt, state, attempts)
    SELECT n * 3 + k - 2, n, kind, n, 1, 'done', 1 FROM numbers, kinds
"""
_TALLIES = """
    INSERT INTO tallies SELECT 'bench', queue, task, state, count(*) FROM jobs
    GROUP BY queue, task, state
"""
_COUNTERS = "UPDATE counters SET value = CASE name WHEN 'seq' THEN 3 * :rows ELSE :rows END"


async def reads(store: Store) -> dict[str, float]:
    """Milliseconds for what screens ask."""
    took: dict[str, float] = {}
    for name, filter in LISTS.items():
        begun = time.perf_counter()
        parsed = parse(filter)
        await store.read(listed, parsed, store.clock.now(), sort=order(parsed), count=True)
        took[name] = (time.perf_counter() - begun) * 1000
    begun = time.perf_counter()
    await store.read(tallies.read)
    took["counts"] = (time.perf_counter() - begun) * 1000
    return took


async def measure(folder: Path, chosen: argparse.Namespace) -> None:
    report = Report(
        "store",
        "Growth",
        f"The store alone: from {min(chosen.rows):,} to {max(chosen.rows):,} jobs that are done, or"
        f" that sleep until their next attempt. Beside the bare driver with executemany, writing"
        f" the same rows. WAL, `synchronous=FULL`; medians of {chosen.rounds} rounds.",
    )
    done = [await a_store(folder, "done", rows) for rows in chosen.rows]
    asleep = [await a_store(folder, "asleep", rows) for rows in chosen.rows]
    small, big = done[0], [*done[1:], asleep[-1]]
    bare = [await a_bare(folder, min(chosen.rows), many=many) for many in (False, True)]
    contenders: list[Redrive | Bare] = [small, *big, *bare]
    if chosen.postgresql:
        redrive = Redrive("redrive on PostgreSQL", chosen.postgresql)
        await redrive.store.open()
        contenders.append(redrive)
    # Before anything is written: not all of these stores take part in that.
    took = await compare_reads([*done, *asleep], chosen.rounds)
    for size in chosen.sizes:
        rates = await compare(contenders, size, chosen.rounds)
        name = f"enqueue, lease and finish, {size:,} jobs a commit"
        report.add(f"{name}, {small.name}", rates[small.name]["life"], "jobs/s")
        report.add(f"{name}, bare driver", rates[bare[1].name]["life"], "jobs/s")
    for each in big:
        for step in ("lease", "finish"):  # of the largest commits
            growth = rates[small.name][step] / rates[each.name][step]
            report.add(f"{step}, {each.name}", growth, "×", goal=at_most(1.3))
    for few, *many in (done, asleep):
        for each in many:
            for question, milliseconds in took[each.name].items():
                growth = milliseconds / took[few.name][question]
                report.add(f"{question}, {each.name}", growth, "×", goal=at_most(1.3))
    for contender in [*contenders, *asleep[:-1]]:
        await contender.close()
    report.note(
        f"Of leases and finishes, growth is beside {small.name}; of lists (their first page, and how"
        f" many jobs there are) beside {min(chosen.rows):,} of the same kind."
    )
    report.write(chosen)


async def a_store(folder: Path, kind: str, rows: int) -> Redrive:
    path = folder / f"{kind}-{rows}.db"
    await make(path, rows, kind)
    redrive = Redrive(f"{rows:,} {kind}", f"sqlite:///{path}")
    await redrive.store.open()
    return redrive


async def a_bare(folder: Path, rows: int, *, many: bool) -> Bare:
    path = folder / f"bare-{many}.db"
    await make(path, rows, "done")
    return Bare(f"bare sqlite3, {'executemany' if many else 'row by row'}", path, many=many)


async def compare(
    contenders: Sequence[Redrive | Bare], size: int, rounds: int
) -> dict[str, dict[str, float]]:
    """Jobs a second by contender and step, medians."""
    rates: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    times = max(1, min(TURN // size, 50))
    for _ in range(rounds):
        for contender in contenders:
            spent: dict[str, float] = defaultdict(float)
            for _ in range(times):
                for step, seconds in (await contender.cycle(size)).items():
                    spent[step] += seconds
            spent["life"] = spent["enqueue"] + spent["lease"] + spent["finish"]
            for step, seconds in spent.items():
                rates[contender.name][step].append(size * times / seconds)
    print(f"\n{size} jobs a commit; jobs/s")
    return {name: medians(name, steps) for name, steps in rates.items()}


async def compare_reads(tables: Sequence[Redrive], rounds: int) -> dict[str, dict[str, float]]:
    """Milliseconds by table and question, medians."""
    took: dict[str, dict[str, list[float]]] = defaultdict(lambda: defaultdict(list))
    for _ in range(rounds * READS):
        for redrive in tables:
            for question, milliseconds in (await reads(redrive.store)).items():
                took[redrive.name][question].append(milliseconds)
    print("\nreads; ms")
    return {name: medians(name, questions) for name, questions in took.items()}


def medians(name: str, measured: dict[str, list[float]]) -> dict[str, float]:
    found = {what: statistics.median(numbers) for what, numbers in measured.items()}
    print(f"  {name:32} {'  '.join(f'{what} {number:>9,.1f}' for what, number in found.items())}")
    return found


def main() -> None:
    parser = options(__doc__, rounds=5)
    parser.add_argument("--rows", type=int, nargs="+", default=[10_000, 1_000_000])
    parser.add_argument("--sizes", type=int, nargs="+", default=[1, 100, 1000])
    parser.add_argument("--postgresql", metavar="URL")
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rows, chosen.sizes, chosen.rounds = [1_000, 10_000], [100], 1
    with tempfile.TemporaryDirectory(dir=".") as folder:
        asyncio.run(measure(Path(folder), chosen))


if __name__ == "__main__":
    main()
