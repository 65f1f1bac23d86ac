"""Handlers for the tests of workers; run by every interpreter a pool may have, 3.9 included."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import redrive


def touch(path: str, text: str = "") -> None:
    with open(path + ".new", "w") as file:
        file.write(text)
    os.rename(path + ".new", path)


def noop(**args: object) -> object:
    pass


def echo(**args: object) -> object:
    return args


async def echo_later(**args: object) -> object:
    await asyncio.sleep(0)
    return args


def facts() -> object:
    job = redrive.current_job()
    return [job.id, job.attempt, job.max_attempts, job.args, job.run, job.step, job.batch]


async def facts_later() -> object:
    await asyncio.sleep(0)
    return facts()


def environment() -> object:
    return {
        "path": sys.path,
        "cwd": os.getcwd(),
        "python": list(sys.version_info[:2]),
        "redrive": redrive.__file__,
        "names": sorted(os.environ),
        "modules": sorted(sys.modules),
    }


def env_of(name: str) -> object:
    return [os.environ.get(name), os.getcwd()]


def limits() -> object:
    import resource

    kinds = (resource.RLIMIT_AS, resource.RLIMIT_NOFILE, resource.RLIMIT_FSIZE)
    return [[resource.getrlimit(kind)[0] for kind in kinds], os.getpriority(os.PRIO_PROCESS, 0)]


def fail(message: str) -> object:
    class Failed(LookupError):
        pass

    raise Failed(message)


async def fail_later(message: str) -> object:
    await asyncio.sleep(0)
    raise LookupError(message)


def say_outright(what: str) -> object:
    if what == "permanent":
        raise redrive.Permanent("no use", type="broken")
    if what == "transient":
        raise redrive.Transient("later", retry_after=90)
    if what == "nonsense":
        raise redrive.Transient("later", retry_after="soon")  # type: ignore[arg-type]
    if what == "bent":
        later = redrive.Transient("later")
        later.retry_after = "soon"  # type: ignore[assignment]
        raise later
    raise redrive.Snooze(3600, "not now")


def leave(code: int) -> object:
    sys.exit(code)


def interrupt_keyboard() -> object:
    raise KeyboardInterrupt


def exit_hard(code: int) -> object:
    os._exit(code)


def segfault() -> None:
    os.kill(os.getpid(), 11)


def big(size: int) -> object:
    return "x" * size


def unfit() -> object:
    return object()


def not_a_number() -> object:
    return float("nan")


def odd_text() -> object:
    return "a\udcffb"


def nested(depth: int) -> object:
    value: list[object] = []
    for _ in range(depth):
        value = [value]
    return value


def speak() -> None:
    print("printed")
    sys.stderr.write("to stderr\n")
    os.write(1, b"by os.write\n")
    subprocess.run(["echo", "by a child"], check=True)
    print("and an unfinished line", end="")


def print_from_c(text: str) -> None:
    import ctypes

    ctypes.CDLL(None).printf(b"%s\n", text.encode())


def log_something() -> None:
    redrive.current_job().log.info("from the job")
    logging.getLogger("app").warning("from the app")


def print_line(text: str) -> None:
    print(text)


def print_and_wait(text: str, path: str) -> None:
    print(text)
    wait_for(path)


def die_loudly() -> object:
    print("last words")
    os._exit(9)


def beat_often(times: int) -> None:
    job = redrive.current_job()
    for done in range(times):
        job.heartbeat()
        job.progress(done + 1, times, "counting")
        job.count("steps")
    job.metric("kind", "test")


def claim(key: str) -> object:
    return redrive.current_job().once(key)


async def claim_later(key: str) -> object:
    await asyncio.sleep(0)
    return redrive.current_job().once(key)


def go_through(items: list[str], stop_at: str | None = None) -> object:
    seen = []
    for item in redrive.current_job().remaining(items):
        if item == stop_at:
            raise RuntimeError(f"stopped at {item}")
        seen.append(item)
    return seen


def wait_for(path: str) -> None:
    """Until the file is there."""
    while not os.path.exists(path):
        time.sleep(0.001)


def sleep(began: str, ended: str) -> None:
    """Sleeps in one system call; says in files that it began, and how it ended."""
    touch(began)
    try:
        time.sleep(60)
    except BaseException as error:
        touch(ended, type(error).__name__)
        raise


async def sleep_later(began: str, ended: str) -> None:
    touch(began)
    try:
        await asyncio.sleep(60)
    except BaseException as error:
        touch(ended, type(error).__name__)
        raise


def spin(milliseconds: float) -> None:
    end = time.perf_counter() + milliseconds / 1000
    while time.perf_counter() < end:
        time.sleep(0)  # lets the thread that hears of a cancel run


async def spin_later(milliseconds: float) -> None:
    await asyncio.sleep(0)
    spin(milliseconds / 2)
    await asyncio.sleep(0)
    spin(milliseconds / 2)


def touch_and_wait(path: str, until: str) -> None:
    touch(path)
    wait_for(until)


gate: list[str] = []  # the files by which `slow_package` tells that it is imported, and waits


def import_slowly(path: str, until: str) -> object:
    gate[:] = [path, until]
    return importlib.import_module("slow_package").VALUE


def touch_file(path: str) -> None:
    touch(path)


def start_a_child(pid_file: str) -> None:
    child = subprocess.Popen(["sleep", "600"])
    touch(pid_file, str(child.pid))
    child.wait()


def hold_the_interpreter(began: str) -> object:
    """As C code does that never lets another thread run."""
    import ctypes

    touch(began)
    return ctypes.PyDLL(None).sleep(60)


def leave_a_child(pid_file: str) -> None:
    """Starts a process of another session that will not go by itself, and does not wait for it."""
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    code += f"open({pid_file!r} + '.up', 'w').close(); time.sleep(600)"
    child = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    wait_for(pid_file + ".up")
    touch(pid_file, str(child.pid))


def leave_a_stranger_and_wait(pid_file: str, until: str) -> None:
    """Starts a process without session, parent or environment of ours."""
    script = f"(env -i setsid sleep 600 & echo $! > {pid_file}.new); mv {pid_file}.new {pid_file}"
    subprocess.run(["/bin/sh", "-c", script], check=True)
    wait_for(until)


def leave_a_child_and_sleep(pid_file: str) -> None:
    leave_a_child(pid_file)
    time.sleep(600)


def refuse_to_go(began: str) -> object:
    touch(began)
    while True:
        with contextlib.suppress(BaseException):
            time.sleep(60)


def fork_and_come_back() -> object:
    return os.fork() == 0


def fork_and_wait(how: str) -> object:
    """How a child ends, and what it says about it."""
    pid = os.fork()
    if pid:
        return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    print("from the child", end="")
    if how == "fail":
        raise LookupError("in the child")
    return how == "return" or sys.exit({"exit": None, "exit 3": 3, "exit in words": "no way"}[how])


def use_a_client() -> object:
    from redrive import Client

    return Client


def leave_a_thread() -> None:
    threading.Thread(target=time.sleep, args=(3600,)).start()


def spoil_output(how: str) -> None:
    import io

    out = sys.stdout
    assert isinstance(out, io.TextIOWrapper)
    print("before")
    if how == "close":
        sys.stdout.close()
        sys.stderr.close()
    elif how == "close what is below":
        assert isinstance(out.buffer, io.BufferedWriter)
        out.buffer.raw.close()
        out.buffer.close()
    elif how == "close descriptors":
        os.close(1)
        os.close(2)
    elif how == "redirect descriptors":
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        os.dup2(1, 2)
    elif how == "open a file in its place":
        os.close(1)
        os.open(os.devnull, os.O_WRONLY)
    elif how == "replace":
        sys.stdout = io.StringIO()
        sys.stderr = None
    elif how == "wrap":
        sys.stdout = io.TextIOWrapper(out.buffer)
    elif how == "detach":
        out.detach()


def print_to_a_full_disk() -> None:
    full = os.open("/dev/full", os.O_WRONLY)
    before = os.dup(1)
    os.dup2(full, 1)
    try:
        print("does not fit")
    finally:
        os.dup2(before, 1)
        os.close(before)
        os.close(full)


def low_descriptors() -> object:
    """What is open here besides the usual three, by a number that a program may get."""
    folder = os.open("/proc/self/fd", os.O_RDONLY)
    try:
        found = {int(name) for name in os.listdir(folder)} - {0, 1, 2, folder}
    finally:
        os.close(folder)
    return sorted(fd for fd in found if fd < 200 and _is_open_by_us(fd))


def _is_open_by_us(fd: int) -> bool:
    try:
        # Some builds of libffi, on which ctypes stands, keep a descriptor of their own library.
        return ".so" not in os.readlink(f"/proc/self/fd/{fd}")
    except OSError:
        return False  # it was for the listing


def _descriptors_of(kind: str) -> list[int]:
    found = {fd: f"/proc/self/fd/{fd}" for fd in map(int, os.listdir("/proc/self/fd"))}
    return [fd for fd, path in found.items() if os.path.exists(path) and kind in os.readlink(path)]


def write_to_the_page() -> object:
    """By whatever descriptor it can be found; what came of it."""
    return [
        _refused(what, fd, value)
        for fd in _descriptors_of("redrive-begun")
        for what, value in ((os.write, bytes(64)), (os.ftruncate, 0))
    ]


def _refused(what: Callable[[int, Any], object], fd: int, value: object) -> str | None:
    try:
        what(fd, value)
    except OSError as error:
        return error.strerror
    return None


def write_to_the_daemon(text: str, path: str) -> None:
    print("about to", flush=True)
    for fd in _descriptors_of("socket:"):
        os.write(fd, text.encode())
    wait_for(path)


def spoil_the_page(path: str, exits: bool) -> None:
    """As native code does that writes through a wild pointer."""
    with open("/proc/self/maps") as maps:
        place = next(line for line in maps if "redrive-begun" in line)
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(int(place.split("-")[0], 16))
        memory.write(bytes(64))
    print("spoilt", flush=True)
    if exits:
        os._exit(1)
    wait_for(path)


def _touch_again_and_again(path: str) -> None:
    while True:
        touch(path)
        time.sleep(0.001)


def go_on_in_a_thread(path: str) -> None:
    threading.Thread(target=_touch_again_and_again, args=(path,), daemon=True).start()
    time.sleep(600)


async def go_on_in_a_lent_thread(path: str) -> None:
    await asyncio.to_thread(_touch_again_and_again, path)


async def go_on_in_a_task(path: str) -> None:
    async def touch_again_and_again() -> None:
        while True:
            touch(path)
            await asyncio.sleep(0.001)

    await asyncio.shield(asyncio.create_task(touch_again_and_again()))


async def tell_a_task_to_end(path: str) -> None:
    helper = asyncio.create_task(asyncio.sleep(600))
    touch(path)
    try:
        await asyncio.sleep(600)
    finally:
        helper.cancel()


def go_to(folder: str, *, removed: bool) -> None:
    os.chdir(folder)
    if removed:
        os.rmdir(folder)


def wait_where_the_environment_is_taken_back(path: str, until: str) -> None:
    def pop(name: str, *default: Any) -> Any:
        del vars(os.environ)["pop"]
        touch_and_wait(path, until)
        return os.environ.pop(name, *default)

    vars(os.environ)["pop"] = pop


def close_the_loop() -> None:
    asyncio.get_event_loop().close()


async def leave_the_loop(path: str) -> None:
    """As a task of the handler does that ends the program: the handler itself has not ended."""

    async def leave() -> None:
        sys.exit(3)

    helper = asyncio.create_task(leave())
    try:
        await asyncio.sleep(600)
    finally:
        touch(path)
        helper.cancel()


def take_the_signals(how: str) -> None:
    """As libraries do that want to shut themselves down in order."""
    for number in (signal.SIGTERM, signal.SIGURG):
        signal.signal(number, getattr(signal, how))


def square(n: int) -> int:
    return n * n


def square_elsewhere(numbers: list[int]) -> object:
    """In processes that share nothing with this one."""
    import multiprocessing

    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.map(square, numbers)
