"""Random hostility on all three sockets; `REDRIVE_FUZZ_SECONDS=600` makes it a long one.

Only a long one shows that the memory stays as it is: everything is used for the first time in
the first minute, and what a minute's sweep gives back is seen after two.
"""

from __future__ import annotations

import asyncio
import os
import random
import socket
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil
import zmq

from redrive.protocol import VERSION, codec
from redrive.protocol.commands import Act, Drain, Enqueue, JobOrder
from redrive.protocol.envelope import Request
from redrive.protocol.queries import Doctor, Hello, ListEvents
from redrive.protocol.rehearsals import Classify
from support.bus import Raw
from support.daemon import Daemon, soon

SECONDS = float(os.environ.get("REDRIVE_FUZZ_SECONDS", "3"))
SEED = int(os.environ.get("REDRIVE_FUZZ_SEED", str(time.time_ns() % 1_000_000)))
WARM_UP = min(60.0, SECONDS / 2)
IS_LONG = SECONDS >= 300
READERS = 4 * 3  # descriptors that the store opens when it is first asked much at a time
MIB = 1024 * 1024

SOCKETS = ("events", "query", "control")
REQUESTS: list[Request] = [
    Doctor(),
    Drain(),
    ListEvents(after=3),
    Classify(text="quota exceeded"),
    Act(verb="kill", ids=["1", "r7"]),
    Enqueue(task="parse", orders=[JobOrder(args={"deep": [[{"x": [1.5, None]}]]})]),
]
# The beginning of a ZMTP 3.1 connection without keys.
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x01NULL" + bytes(48)
READY = b"\x04\x1c\x05READY\x0bSocket-Type\x00\x00\x00\x06DEALER"


class Attacker:
    """Everything it does depends on the seed alone."""

    def __init__(self, seed: int, folder: Path, requests: Sequence[Request] = REQUESTS) -> None:
        self.random = random.Random(seed)
        self.requests = requests
        self.folder = folder
        self.context = zmq.Context()
        self.attacks: list[Callable[[], None]] = [
            self.send_bytes,
            self.send_after_greeting,
            self.send_frames,
            self.send_damaged_calls,
            self.send_bombs,
            self.subscribe,
            self.ask_and_leave,
        ]

    def attack(self) -> None:
        self.random.choice(self.attacks)()

    def send_bytes(self) -> None:
        self._connection(self._bytes(5_000))

    def send_after_greeting(self) -> None:
        self._connection(GREETING + READY[: self.random.randrange(40)] + self._bytes(2_000))

    def send_frames(self) -> None:
        with self._dealer() as dealer:
            for _ in range(self.random.randrange(20)):
                count = self.random.choice([1, 2, 3, 50, 2_000])
                dealer.send_multipart([self._bytes(50) for _ in range(count)])

    def send_damaged_calls(self) -> None:
        with self._dealer() as dealer:
            for _ in range(self.random.randrange(50)):
                call = bytearray(codec.encode_call("a", self.random.choice(self.requests)))
                for _ in range(self.random.randrange(1, 4)):
                    call[self.random.randrange(len(call))] = self.random.randrange(256)
                dealer.send(bytes(call[: self.random.randrange(1, len(call) + 1)]))

    def send_bombs(self) -> None:
        header = self.random.choice([b"\x91", b"\x81\xa1x", b"\xdd\xff\xff\xff\xff", b"\x80"])
        with self._dealer() as dealer:
            dealer.send(b"\x93\xa1a" + header * self.random.randrange(30_000))

    def subscribe(self) -> None:
        socket = self.context.socket(zmq.XSUB)
        socket.setsockopt(zmq.LINGER, 0)
        socket.connect(f"ipc://{self.folder}/events")
        for _ in range(self.random.randrange(200)):
            verb = self.random.choice([b"\x00", b"\x01", b"\x01", b"\x02", b""])
            socket.send(verb + self.random.choice([b"", b"events", b"head", self._bytes(600)]))
        socket.close()

    def ask_and_leave(self) -> None:
        with self._dealer() as dealer:
            for number in range(self.random.randrange(100)):
                request = self.random.choice(self.requests)
                dealer.send(codec.encode_call(f"{number}", request, self.random.random()))

    def _connection(self, data: bytes) -> None:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect(str(self.folder / self.random.choice(SOCKETS)))
                connection.sendall(data)
            except (BrokenPipeError, ConnectionResetError, BlockingIOError):
                pass  # the daemon has had enough of us

    def _dealer(self) -> zmq.Socket[bytes]:
        dealer = self.context.socket(zmq.DEALER)
        dealer.setsockopt(zmq.LINGER, self.random.choice([0, 50]))
        dealer.setsockopt(zmq.SNDTIMEO, 1_000)
        dealer.connect(f"ipc://{self.folder}/{self.random.choice(SOCKETS[1:])}")
        return dealer

    def _bytes(self, most: int) -> bytes:
        return self.random.randbytes(self.random.randrange(most))


class Target:
    """What is attacked, and what it has come to hold meanwhile."""

    def __init__(self, pid: int, opens: int = 0) -> None:
        self.process = psutil.Process(pid)
        self.files = self.process.num_fds() + opens

    async def grown(self, attacker: Attacker) -> list[int]:
        """By how many bytes after the warm-up, and in the last half of what came then."""
        rest = (SECONDS - WARM_UP) / 2
        sizes = [await self._after(attacker, seconds) for seconds in (WARM_UP, rest, rest)]
        attacker.context.destroy(linger=0)
        await soon(lambda: self.process.num_fds() <= self.files, "what was opened is closed")
        return [sizes[2] - sizes[0], sizes[2] - sizes[1]]

    async def _after(self, attacker: Attacker, seconds: float) -> int:
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            for _ in range(10):
                await asyncio.to_thread(attacker.attack)
            with Raw(zmq.DEALER, f"ipc://{attacker.folder}/query") as raw:
                answer = await raw.ask(Hello(version=VERSION, client="fuzz"))
            assert answer.refusal is None
        return int(self.process.memory_info().rss)


async def test_random_hostility_leaves_the_sockets_alive_and_their_memory_flat(
    daemon: asyncio.subprocess.Process, folder: Path
) -> None:
    print(f"REDRIVE_FUZZ_SEED={SEED}")
    after, lately = await Target(daemon.pid).grown(Attacker(SEED, folder / "run"))
    assert daemon.returncode is None
    assert after < 8 * MIB
    assert lately < 4 * MIB


async def test_random_hostility_leaves_a_whole_daemon_alive_and_its_memory_flat(
    folder: Path,
) -> None:
    print(f"REDRIVE_FUZZ_SEED={SEED}")
    whole = Daemon(folder).start()
    assert whole.process is not None
    try:
        harmless = [each for each in REQUESTS if not isinstance(each, Drain)]
        attacker = Attacker(SEED, folder / "run", harmless)
        after, lately = await Target(whole.process.pid, READERS).grown(attacker)
        assert whole.process.poll() is None
        assert after < (8 if IS_LONG else 24) * MIB
        assert lately < (4 if IS_LONG else 24) * MIB
    finally:
        whole.stop()
