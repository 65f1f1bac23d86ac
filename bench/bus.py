"""The speed of the bus: round trips a second, and what publishing costs the daemon.

Round trips go through everything but the work itself: frames, decoding, lanes, table, answer;
beside them, in turn, a bare ROUTER that only echoes. Publishing is measured on the daemon's
event loop with nobody, one and three listeners.

    python bench/bus.py [--requests 20000] [--events 200000] [--rounds 3]
"""

from __future__ import annotations

import argparse
import asyncio
import multiprocessing
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from multiprocessing.synchronize import Event as Flag
from pathlib import Path

import uvloop
import zmq
from report import Report, options

from redrive.config.sections import Bus as Settings
from redrive.models import Event
from redrive.protocol import VERSION, codec
from redrive.protocol.commands import Done, Trigger
from redrive.protocol.envelope import Request
from redrive.protocol.queries import Doctor, DoctorReply, Welcome
from redrived.api.server import Asker, Server
from redrived.bus import Bus

LISTENERS = (0, 1, 3)


async def doctor(asker: Asker, request: Doctor) -> DoctorReply:
    return DoctorReply(checks=[])


async def trigger(asker: Asker, request: Trigger) -> Done:
    return Done(text="done")


def welcome(asker: Asker) -> Welcome:
    return Welcome(
        version=VERSION,
        program="",
        node="",
        epoch="",
        store="",
        role=asker.role,
        who=asker.who,
    )


def serve(folder: Path, is_up: Flag) -> None:
    async def main() -> None:
        bus = Bus(Settings(), folder, "bench")
        await bus.start()
        await Server(bus, {Doctor: doctor, Trigger: trigger}, welcome).start()
        is_up.set()
        await asyncio.Event().wait()

    uvloop.run(main())


def echo(folder: Path, is_up: Flag) -> None:
    router = zmq.Context().socket(zmq.ROUTER)
    router.bind(f"ipc://{folder}/query")
    is_up.set()
    while True:
        router.send_multipart(router.recv_multipart())


def listen(folder: Path, is_up: Flag) -> None:
    socket = zmq.Context().socket(zmq.SUB)
    socket.connect(f"ipc://{folder}/events")
    socket.subscribe(b"")
    while True:
        socket.recv_multipart()
        is_up.set()


@contextmanager
def running(target: Callable[[Path, Flag], None], folder: Path) -> Iterator[Flag]:
    """A process, and what it sets when it is ready."""
    is_up = multiprocessing.Event()
    process = multiprocessing.Process(target=target, args=(folder, is_up))
    process.start()
    try:
        yield is_up
    finally:
        process.kill()
        process.join()


def round_trips(address: str, request: Request, n: int, in_flight: int) -> float:
    """Round trips a second of one connection with so many requests on their way."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.connect(address)
        calls = [codec.encode_call(f"{time.monotonic_ns()}-{i}", request) for i in range(n)]
        start = time.perf_counter()
        for call in calls[:in_flight]:
            socket.send(call)
        for call in calls[in_flight:]:
            socket.recv()
            socket.send(call)
        for _ in range(in_flight):
            socket.recv()
        return n / (time.perf_counter() - start)


async def publishing(folder: Path, listeners: int, n: int, batch: int) -> float:
    """Microseconds of the daemon's CPU that an event costs, libzmq's thread included."""
    bus = Bus(Settings(), folder, "bench")
    await bus.start()
    with ExitStack() as stack:
        heard = [stack.enter_context(running(listen, folder)) for _ in range(listeners)]
        while not all(flag.is_set() for flag in heard):
            bus.head(0, 0)
            await asyncio.sleep(0.01)
        start = time.process_time()
        for first in range(0, n, batch):
            bus.publish(event(first + i) for i in range(batch))
            await asyncio.sleep(0)
        bus.head(n, 0)
        spent = time.process_time() - start
    await bus.stop()
    return spent / n * 1e6


def event(seq: int) -> Event:
    return Event(
        seq=seq,
        at=1_790_000_000_000_000,
        type="action_started",
        job=seq,
        attempt=1,
        state="leased",
        attempts=1,
        data={"node": "main"},
    )


def compare(folder: Path, report: Report, chosen: argparse.Namespace) -> None:
    """Round trips of ours and of the bare echo, in turns."""
    ours, bare = folder / "ours", folder / "bare"
    bare.mkdir()
    kinds: list[tuple[str, Path, str, Request]] = [
        ("bare echo", bare, "query", Doctor()),
        ("query", ours, "query", Doctor()),
        ("control", ours, "control", Trigger(schedule="x")),
    ]
    with running(serve, ours) as ours_is_up, running(echo, bare) as bare_is_up:
        ours_is_up.wait()
        bare_is_up.wait()
        for in_flight in (1, 64):
            measured: dict[str, list[float]] = {kind[0]: [] for kind in kinds}
            for _ in range(chosen.rounds):
                for title, at, socket, request in kinds:
                    address = f"ipc://{at}/{socket}"
                    measured[title].append(
                        round_trips(address, request, chosen.requests, in_flight)
                    )
            for title, rates in measured.items():
                rate = statistics.median(rates)
                report.add(f"{title}, {in_flight} in flight", rate, "round trips/s")


def publish(folder: Path, report: Report, chosen: argparse.Namespace) -> None:
    for listeners in LISTENERS:
        costs = [
            uvloop.run(publishing(folder / "p", listeners, chosen.events, 50))
            for _ in range(chosen.rounds)
        ]
        what = f"an event published to {listeners} listeners, CPU of the daemon"
        report.add(what, statistics.median(costs), "µs")


def main() -> None:
    parser = options(__doc__, rounds=3)
    parser.add_argument("--requests", type=int, default=20_000)
    parser.add_argument("--events", type=int, default=200_000)
    chosen = parser.parse_args()
    if chosen.quick:
        chosen.rounds, chosen.requests, chosen.events = 1, 2_000, 10_000
    report = Report(
        "bus",
        "The bus",
        "Requests that do nothing, through frames, decoding, table and answer, beside a bare ROUTER"
        f" that only echoes; nothing is stored. Medians of {chosen.rounds} rounds.",
    )
    with tempfile.TemporaryDirectory(prefix="redrive-") as name:
        compare(Path(name), report, chosen)
        publish(Path(name), report, chosen)
    report.write(chosen)


if __name__ == "__main__":
    main()
