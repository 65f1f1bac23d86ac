"""Commands run with what they need and nothing else, and their end is told as it was."""

from __future__ import annotations

import asyncio
import errno
import json
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from redrive.config.sections import Limits
from redrived.processes.command import CommandRun, Exit
from redrived.processes.environment import UnfitArguments
from redrived.processes.exits import Exits
from redrived.processes.notify_socket import Notice
from redrived.processes.spawn import NoRoom
from support.processes import PATIENCE, Workshop, eventually, is_alive


async def test_the_exit_code_and_the_end_of_stderr_are_told(workshop: Workshop) -> None:
    exited = await workshop.exit_of("echo fine; echo broken >&2; exit 75")
    assert exited.code == 75
    assert exited.signal is None
    assert exited.stderr_tail == "broken"
    assert exited.stdout_tail == "fine"


async def test_a_signal_is_told_by_its_name(workshop: Workshop) -> None:
    exited = await workshop.exit_of("kill -SEGV $$")
    assert exited.signal == "SIGSEGV"
    assert exited.code is None


async def test_a_killed_command_is_noticed_and_not_called_out_of_memory(workshop: Workshop) -> None:
    run = workshop.running(["sleep", "300"])
    os.kill(run.tree.pid, signal.SIGKILL)
    exited = await workshop.end_of(run)
    assert exited.signal == "SIGKILL"
    assert not exited.oom


@pytest.mark.parametrize(
    ("printed", "result"),
    [
        ('{"rows": 3}', {"rows": 3}),
        ('working\n{"rows": 3}\n\n', {"rows": 3}),
        ('{"rows": 3}\ndone', None),
        ("[1, 2]", None),
        ('{"rows": ', None),
        ("", None),
    ],
)
async def test_a_json_object_on_the_last_line_is_the_result(
    workshop: Workshop, printed: str, result: object
) -> None:
    exited = await workshop.exit_of(["printf", "%s", printed])
    assert exited.code == 0
    assert exited.result == result


async def test_the_longest_result_may_have_a_line_end(workshop: Workshop) -> None:
    text = json.dumps({"a": "x" * (65_536 - 9)})
    (workshop.folder / "longest").write_text(f"before\n{text}\r\n")
    exited = await workshop.exit_of("cat longest")
    assert (len(text), exited.result) == (65_536, json.loads(text))


@pytest.mark.parametrize(
    ("line", "note"),
    [
        ('{"a": NaN}', "no result: its last line is no JSON object: JSON is malformed"),
        ('{"a": "' + "x" * 100_000 + '"}', "no result: its last line has more than 65536 bytes"),
        ('{"a": ' + "[" * 101 + "]" * 101 + "}", "nested more than 100 levels deep"),
        ('{"a": ' + "[" * 30_000 + "]" * 30_000 + "}", "nested more than 100 levels deep"),
    ],
    ids=["no JSON", "too long", "too deep", "without a bottom"],
)
async def test_a_last_line_that_looks_like_a_result_and_is_none_is_told(
    workshop: Workshop, line: str, note: str
) -> None:
    (workshop.folder / "last").write_text(f"before\n{line}\n")
    exited = await workshop.exit_of("cat last")
    assert exited.result is None
    assert note in (exited.result_note or "")


@pytest.mark.parametrize("line", ["", "done", "x" * 100_000, "[1, 2]"])
async def test_a_last_line_that_looks_like_no_result_is_nothing_to_tell(
    workshop: Workshop, line: str
) -> None:
    (workshop.folder / "last").write_text(line)
    assert (await workshop.exit_of("cat last")).result_note is None


async def test_a_failed_command_has_no_result(workshop: Workshop) -> None:
    exited = await workshop.exit_of("echo '{}'; exit 1")
    assert exited.result is None


async def test_a_grandchild_that_keeps_the_output_open_delays_nothing(workshop: Workshop) -> None:
    run = workshop.running("setsid sleep 300 & echo $! > pid; echo done")
    exited = await workshop.end_of(run)
    assert exited.code == 0
    workshop.trees.sweep()


@pytest.mark.parametrize(
    ("line", "code", "message"),
    [
        (["no-such-program"], 127, "cannot run no-such-program: there is no such program"),
        (["/no/such/program"], 127, "cannot run /no/such/program: there is no such program"),
        (["/etc/passwd"], 126, "cannot run /etc/passwd in"),
        (["echo", "x" * 200_000], 126, "Argument list too long"),
    ],
)
@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_what_cannot_be_run_is_a_failed_attempt(
    workshop: Workshop, line: list[str], code: int, message: str, where: str
) -> None:
    cwd = os.getcwd() if where == "here" else str(workshop.folder)
    exited = workshop.start(line, cwd=cwd)
    assert isinstance(exited, Exit)
    assert exited.code == code
    assert message in exited.stderr_tail
    said = workshop.outputs.read(1, 1).chunks
    assert message in b"".join(chunk.data for chunk in said).decode()


async def test_a_missing_folder_is_named(workshop: Workshop) -> None:
    exited = workshop.start(["true"], cwd="/no/such/folder")
    assert isinstance(exited, Exit)
    assert exited.code == 126  # 127 says that the program was not found
    assert exited.stderr_tail == "cannot run true: there is no folder /no/such/folder"


@pytest.mark.parametrize(
    ("beginning", "missing"),
    [
        ("#!/no/such/shell -e\n", "its interpreter '/no/such/shell'"),
        ("#! /bin/sh\r\n", r"its interpreter '/bin/sh\r'"),
    ],
)
@pytest.mark.parametrize("name", ["./script", "script"])
async def test_a_missing_interpreter_is_named_and_not_its_script(
    workshop: Workshop, beginning: str, missing: str, name: str
) -> None:
    script = workshop.folder / "script"
    script.write_text(f"{beginning}true\n")
    script.chmod(0o755)
    exited = workshop.start([name], env={"PATH": f"{workshop.folder}:/bin"})
    assert isinstance(exited, Exit)
    assert exited.code == 126
    assert exited.stderr_tail == f"cannot run {name}: {missing} is not there"


async def test_a_program_that_has_moved_is_found_again(workshop: Workshop) -> None:
    here = os.getcwd()
    for folder in ("one", "two"):
        (workshop.folder / folder).mkdir()
    env = {"PATH": f"{workshop.folder}/one:{workshop.folder}/two:/usr/bin:/bin"}
    for folder in ("one", "two"):
        program = workshop.folder / folder / "greet"
        program.write_text("#!/bin/sh\nexit 3\n")
        program.chmod(0o700)
        assert (await workshop.exit_of(["greet"], cwd=here, env=env)).code == 3
        program.unlink()


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_command_finds_only_its_own_environment(
    workshop: Workshop, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("NOTIFY_SOCKET", "WATCHDOG_USEC", "LISTEN_FDS", "DATABASE_URL", "CURVE_KEY"):
        monkeypatch.setenv(name, "secret")
    cwd = os.getcwd() if where == "here" else str(workshop.folder)
    env = {"COLOUR": "blue", "REDRIVE_STORE": "another", "REDRIVE_ATTEMPT": "0.0"}
    run = workshop.running(["env"], cwd=cwd, run="r7", env=env)
    await workshop.end_of(run)
    found = dict(line.split("=", 1) for line in workshop.printed(run).splitlines())
    for inherited in ("PATH", "HOME", "LANG", "TZ"):
        found.pop(inherited, None)
    assert found == {
        "COLOUR": "blue",
        "REDRIVE_ATTEMPT": "1.1",
        "REDRIVE_ATTEMPT_NUMBER": "1",
        "REDRIVE_JOB": "1",
        "REDRIVE_RUN": "r7",
        "REDRIVE_STORE": workshop.owner,
    }


@pytest.mark.parametrize("where", ["here", "elsewhere"])
async def test_a_command_has_three_descriptors_and_a_session_of_its_own(
    workshop: Workshop, where: str
) -> None:
    cwd = os.getcwd() if where == "here" else str(workshop.folder)
    look = "import os; print(os.listdir('/proc/self/fd'), os.getsid(0) == os.getpid(), oct(os.umask(0)))"
    run = workshop.running([sys.executable, "-c", look], cwd=cwd)
    await workshop.end_of(run)
    # The fourth is the listing's own.
    assert workshop.printed(run) == "['0', '1', '2', '3'] True 0o77\n"


async def test_shell_text_gets_its_arguments_through_the_environment_and_a_file(
    workshop: Workshop,
) -> None:
    args = {"path": "/in; touch hacked", "max-size": 5, "tags": ["a"]}
    run = workshop.running(
        'echo "$REDRIVE_ARG_PATH" "$REDRIVE_ARG_MAX_SIZE" $REDRIVE_ARG_TAGS; cat "$REDRIVE_ARGS"',
        args=args,
    )
    await workshop.end_of(run)
    assert workshop.printed(run) == (
        '/in; touch hacked 5 ["a"]\n{"path":"/in; touch hacked","max-size":5,"tags":["a"]}'
    )
    assert not (workshop.folder / "hacked").exists()
    assert list((workshop.folder / "run" / "attempts").iterdir()) == []


async def test_a_command_runs_though_the_folder_of_its_argument_file_was_removed(
    workshop: Workshop,
) -> None:
    shutil.rmtree(workshop.folder / "run")
    run = workshop.running('cat "$REDRIVE_ARGS"', args={"path": "a"})
    await workshop.end_of(run)
    assert workshop.printed(run) == '{"path":"a"}'


async def test_an_argument_too_long_for_the_environment_is_in_the_file(workshop: Workshop) -> None:
    line = 'echo "${REDRIVE_ARG_TEXT-none}"; wc -c < "$REDRIVE_ARGS"'
    run = workshop.running(line, args={"text": "x" * 70_000})
    await workshop.end_of(run)
    assert workshop.printed(run).split() == ["none", "70011"]


@pytest.mark.parametrize(
    ("line", "args", "problem"),
    [
        ("true", {"dir": "a\0b"}, "argument 'dir' holds a NUL character"),
        ("true", {"X": 1, "x": 2}, "arguments 'X' and 'x' would both be $REDRIVE_ARG_X"),
        ("true", {"a-b": 1, "a_b": 2}, "arguments 'a-b' and 'a_b' would both be $REDRIVE_ARG_A_B"),
        (["echo", "a\0b"], {}, "word 1 of the command holds a NUL character"),
    ],
)
async def test_arguments_that_a_command_cannot_get_whole_are_refused(
    workshop: Workshop, line: list[str] | str, args: dict[str, Any], problem: str
) -> None:
    with pytest.raises(UnfitArguments, match=re.escape(problem)):
        workshop.running(line, args=args)
    assert list((workshop.folder / "run" / "attempts").iterdir()) == []


async def test_limits_hold_from_the_first_instruction(workshop: Workshop) -> None:
    limits = Limits(
        memory=1 << 30, open_files=64, cpu=9.5, processes=5000, file_size=1 << 20, nice=5
    )
    look = (
        "import os, resource as r;"
        "print([r.getrlimit(getattr(r, 'RLIMIT_' + name))[0]"
        " for name in ('AS', 'NOFILE', 'CPU', 'NPROC', 'FSIZE')], os.nice(0))"
    )
    run = workshop.running([sys.executable, "-c", look], limits=limits)
    await workshop.end_of(run)
    nice = min(os.nice(0) + 5, 19)
    assert workshop.printed(run) == f"[{1 << 30}, 64, 10, 5000, {1 << 20}] {nice}\n"


async def test_who_uses_up_its_processor_time_is_told_so_by_signal(workshop: Workshop) -> None:
    exited = await workshop.exit_of("while :; do :; done", limits=Limits(cpu=1))
    assert exited.signal == "SIGXCPU"


async def test_a_limit_that_cannot_be_set_fails_the_attempt(workshop: Workshop) -> None:
    beyond = resource.getrlimit(resource.RLIMIT_NOFILE)[1] * 1_000_000
    exited = await workshop.exit_of(["true"], limits=Limits(open_files=beyond))
    assert exited.code == 126
    assert "ulimit" in exited.stderr_tail


async def test_a_limited_command_that_does_not_exist_is_told_apart(workshop: Workshop) -> None:
    exited = await workshop.exit_of(["no-such-program"], limits=Limits(open_files=64))
    assert exited.code == 127
    assert exited.stderr_tail.startswith("cannot run no-such-program: there is no such program")


async def test_what_a_command_says_on_its_socket_is_heard_to_the_last_word(
    workshop: Workshop,
) -> None:
    heard: list[Notice] = []
    say = (
        "import os, socket; s = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM);"
        "s.connect(os.environ['NOTIFY_SOCKET']);"
        "s.send(b'WATCHDOG=1'); s.send(b'X_REDRIVE_METRIC_rows=7')"
    )
    run = workshop.start([sys.executable, "-c", say], on_notice=heard.append)
    assert not isinstance(run, Exit)
    await workshop.end_of(run)
    assert [notice.metrics for notice in heard] == [{}, {"rows": 7}]
    assert list((workshop.folder / "run" / "attempts").iterdir()) == []


async def test_a_flood_costs_no_memory_and_is_cut_at_the_limit(workshop: Workshop) -> None:
    limits = Limits(output=1 << 20)
    before = psutil.Process().memory_info().rss
    run = workshop.running("yes | tr -d '\\n'", limits=limits)
    await eventually(lambda: run.sample() > 32 << 20)
    await run.end(grace=0)
    exited = await workshop.end_of(run)
    assert exited.output > 32 << 20
    assert workshop.outputs.read(1, 1, limit=0).size == 1 << 20
    assert psutil.Process().memory_info().rss - before < 16 << 20


async def test_a_log_folder_that_cannot_be_made_stops_no_command_and_is_told_of_once(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    (workshop.folder / "state").mkdir()
    (workshop.folder / "state" / "outputs").write_text("in the way")
    run = workshop.running("echo lost; echo told >&2; exit 3")
    assert (await workshop.end_of(run)).code == 3
    assert (await workshop.exit_of(["echo", "lost, too"])).code == 0
    assert caplog.text.count("not kept until it can be again: Not a directory") == 1


async def test_a_log_folder_that_vanishes_is_made_again(
    workshop: Workshop, caplog: pytest.LogCaptureFixture
) -> None:
    run = workshop.running("touch ready; while [ ! -e go ]; do sleep 0.01; done; echo first")
    await eventually(lambda: (workshop.folder / "ready").exists())
    shutil.rmtree(workshop.folder / "state" / "outputs")
    (workshop.folder / "go").touch()
    assert (await workshop.end_of(run)).code == 0
    again = workshop.running(["echo", "second"])
    await workshop.end_of(again)
    assert "not kept" not in caplog.text
    assert workshop.printed(again) == "second\n"


async def test_what_cannot_be_run_is_told_though_nothing_more_can_be_written(
    workshop: Workshop,
) -> None:
    assert (await workshop.exit_of(["true"])).code == 0
    printed = workshop.folder / "state" / "outputs" / "slots" / "0.err"  # as by a straggler
    printed.write_text("x" * 100)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (60, hard))
    try:
        exited = await workshop.exit_of(["no-such-program"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert exited.code == 127
    assert "no-such-program" in exited.stderr_tail


async def test_without_descriptors_nothing_starts_and_what_runs_goes_on(workshop: Workshop) -> None:
    running = workshop.running(["sleep", "300"])
    refusals: list[str] = []
    with all_descriptors_taken() as taken:
        while True:
            try:
                await workshop.end_of(workshop.running(["true"]))
                break
            except NoRoom as refused:
                refusals.append(refused.message)
            os.close(taken.pop())
    assert len(refusals) > 8, "some are kept for whoever comes to ask"
    assert set(refusals) == {f"cannot start a command now: {os.strerror(errno.EMFILE)}"}
    assert is_alive(running.tree.pid)
    await running.end(grace=0)


async def test_a_command_whose_exit_nobody_would_see_does_not_run(
    workshop: Workshop, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[int] = []

    def watch(_: object, __: int, run: CommandRun) -> None:
        started.append(run.tree.pid)
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))  # fs.epoll.max_user_watches

    await workshop.exit_of(["true"])
    descriptors = len(os.listdir("/proc/self/fd"))
    with monkeypatch.context() as patched:
        patched.setattr(Exits, "watch", watch)
        with pytest.raises(NoRoom, match="cannot start a command"):
            workshop.running(["sleep", "300"])

    assert started
    assert not any(map(psutil.pid_exists, started))
    assert len(os.listdir("/proc/self/fd")) == descriptors
    assert (await workshop.exit_of(["true"])).code == 0


@contextmanager
def all_descriptors_taken() -> Iterator[list[int]]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    highest = max(map(int, os.listdir("/proc/self/fd")))
    # However many the tests before have left open, more are free than are kept for others.
    resource.setrlimit(resource.RLIMIT_NOFILE, (2 * highest + 40, hard))
    taken: list[int] = []
    try:
        with suppress(OSError):
            while True:
                taken.append(os.open(os.devnull, os.O_RDONLY))
        yield taken
    finally:
        for descriptor in taken:
            os.close(descriptor)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


async def test_an_ending_goes_on_when_the_caller_is_cancelled(workshop: Workshop) -> None:
    run = workshop.running("trap '' TERM; touch ready; while :; do sleep 0.05; done")
    await eventually(lambda: (workshop.folder / "ready").exists())
    caller = asyncio.create_task(run.end(grace=0.1))
    await asyncio.sleep(0)
    caller.cancel()
    assert (await workshop.end_of(run)).signal == "SIGKILL"


async def test_the_files_of_an_earlier_daemon_are_cleared_away(tmp_path: Path) -> None:
    stale = tmp_path / "run" / "attempts" / "5.9.json"
    stale.parent.mkdir(parents=True)
    stale.write_text("{}")
    Workshop(tmp_path)
    assert not stale.exists()


async def test_a_program_is_looked_for_from_the_folder_of_the_command(workshop: Workshop) -> None:
    (workshop.folder / "bin").mkdir()
    program = workshop.folder / "bin" / "greet"
    program.write_text("#!/bin/sh\nexit 3\n")
    program.chmod(0o700)
    assert (await workshop.exit_of(["greet"], env={"PATH": "bin:/bin"})).code == 3
    assert (await workshop.exit_of(["bin/greet"])).code == 3


async def test_an_open_descriptor_of_the_daemon_is_not_passed_on(workshop: Workshop) -> None:
    leak = os.open(os.devnull, os.O_RDONLY)
    os.set_inheritable(leak, True)
    run = workshop.running(["ls", "/proc/self/fd"])
    await workshop.end_of(run)
    os.close(leak)
    assert workshop.printed(run).split() == ["0", "1", "2", "3"]


# The command's output is a pipe nobody reads yet, so its start waits: for another thread.
PATIENT = """
import os, sys, threading
from redrived.processes.proc import children
from redrived.processes.spawn import spawn

pipe = sys.argv[1]
os.mkfifo(pipe)

def read() -> None:
    while not children(os.getpid()):
        pass
    os.read(os.open(pipe, os.O_RDONLY), 100)

reader = threading.Thread(target=read)
reader.start()
pid = spawn(["echo", "hello"], cwd="/", env={"PATH": os.defpath}, output=(pipe, os.devnull))
reader.join()
print(os.waitpid(pid, 0)[1])
"""


async def test_other_threads_go_on_while_a_command_is_started(tmp_path: Path) -> None:
    script = [sys.executable, "-c", PATIENT, str(tmp_path / "pipe")]
    done = await asyncio.to_thread(subprocess.run, script, capture_output=True, timeout=PATIENCE)
    assert done.stdout == b"0\n", done.stderr.decode()
