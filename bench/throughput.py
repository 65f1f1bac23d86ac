"""Draining no-op Python jobs: redrive against Huey on SQLite, interleaved in one run.

Both have two worker processes and commit durably: redrive with `durability = "full"` and every
event logged, Huey with WAL and fsync. Jobs are enqueued first and drained then; the enqueue
rates are told too. Huey is installed into an environment of the bench's own.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
import time
from pathlib import Path

from redrive.blocking import Client
from redrive.errors import RedriveError

HERE = Path(__file__).parent
PEERS = HERE / ".peers"

CONFIG = """
[daemon]
name = "bench"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 2
[store]
durability = "full"
[pools.default]
path = ["."]
processes = 2
[tasks.noop]
python = "handlers:noop"
"""


def redrive(folder: Path, n: int) -> dict[str, float]:
    (folder / "handlers.py").write_text("def noop():\n    pass\n")
    config = folder / "config.toml"
    config.write_text(CONFIG)
    log = (folder / "redrived.log").open("wb")
    daemon = subprocess.Popen(
        [sys.executable, "-m", "redrived", "--config", str(config)], stdout=log, stderr=log
    )
    try:
        with Client(config, timeout=60) as client:
            _until(lambda: _answers(client))
            for _ in range(50):  # the pace of the task is known, the workers are warm
                client.enqueue("noop")
            _until(lambda: client.status().states["done"] >= 50)
            before = time.perf_counter()
            for _ in range(200):
                client.enqueue("noop")
            one_by_one = 200 / (time.perf_counter() - before)
            _until(lambda: client.status().states["done"] >= 250)
            _pause(client, "pause")
            before = time.perf_counter()
            client.enqueue_many("noop", _orders(n))
            bulk = n / (time.perf_counter() - before)
            before = time.perf_counter()
            _pause(client, "resume")
            _until(lambda: client.status().states["done"] >= n + 250)
            drained = n / (time.perf_counter() - before)
    finally:
        daemon.terminate()
        daemon.wait(60)
    return {"one by one": one_by_one, "bulk": bulk, "drain": drained}


def _orders(n: int) -> list[object]:
    from redrive.protocol.commands import JobOrder

    return [JobOrder() for _ in range(n)]


def _pause(client: Client, verb: str) -> None:
    from redrive.protocol.commands import PauseIt, ResumeIt

    client.ask(PauseIt(name="task:noop") if verb == "pause" else ResumeIt(name="task:noop"))


def _answers(client: Client) -> bool:
    try:
        client.hello()
    except RedriveError:
        return False
    return True


HUEY = """
    from huey import SqliteHuey
    huey = SqliteHuey(filename="huey.db", results=False, fsync=True, journal_mode="wal", timeout=30)
    @huey.task()
    def noop():
        pass
"""

HUEY_FILL = """
    import sys, time
    from app import huey, noop
    n = int(sys.argv[1])
    before = time.perf_counter()
    for _ in range(n):
        noop()
    print(n / (time.perf_counter() - before))
"""

HUEY_PENDING = """
    import sys, time
    from app import huey
    floor = int(sys.argv[1])
    while huey.pending_count() > floor:
        time.sleep(0.005)
    before, left = time.perf_counter(), huey.pending_count()
    while huey.pending_count():
        time.sleep(0.005)
    print(left / (time.perf_counter() - before))
"""


def huey(folder: Path, n: int) -> dict[str, float]:
    for name, text in (("app", HUEY), ("fill", HUEY_FILL), ("pending", HUEY_PENDING)):
        (folder / f"{name}.py").write_text(textwrap.dedent(text))
    python = PEERS / "bin" / "python"
    filled = subprocess.check_output([python, "fill.py", str(n)], cwd=folder, text=True)
    consumer = subprocess.Popen(
        [PEERS / "bin" / "huey_consumer", "app.huey", "-w", "2", "-k", "process", "-d", "0.001"],
        cwd=folder,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": str(folder)},
        start_new_session=True,
    )
    try:
        drained = subprocess.check_output(
            [python, "pending.py", str(n * 9 // 10)], cwd=folder, text=True
        )
    finally:
        os.killpg(consumer.pid, 9)
        consumer.wait()
    return {"one by one": float(filled), "drain": float(drained)}


def _until(look: object, every: float = 0.01) -> None:
    while not look():  # type: ignore[operator]
        time.sleep(every)


def _install_peers() -> None:
    if not (PEERS / "bin" / "huey_consumer").exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
        subprocess.run(
            [PEERS / "bin" / "python", "-m", "pip", "install", "--quiet", "huey"], check=True
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=50_000)
    parser.add_argument("--huey-jobs", type=int, default=5_000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    _install_peers()
    ours: list[dict[str, float]] = []
    theirs: list[dict[str, float]] = []
    for number in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=".") as folder:
            ours.append(redrive(Path(folder).absolute(), options.jobs))
        with tempfile.TemporaryDirectory(dir=".") as folder:
            theirs.append(huey(Path(folder).absolute(), options.huey_jobs))
        print(f"round {number + 1}: redrive {ours[-1]}  huey {theirs[-1]}")
    for what in ("one by one", "bulk", "drain"):
        mine = statistics.median(each[what] for each in ours)
        line = f"{what:>12}: redrive {mine:>10,.0f}/s"
        if what in theirs[0]:
            huey_rate = statistics.median(each[what] for each in theirs)
            line += f"   huey on SQLite {huey_rate:>8,.0f}/s   ratio {mine / huey_rate:.1f}"
        print(line)


if __name__ == "__main__":
    main()
