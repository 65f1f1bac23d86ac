from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from redrive.cli.main import root
from redrive.errors import Exit
from redrive.models import plain
from redrive.protocol.queries import StatusReply
from redrive.protocol.rows import Attention, NodeRow, Pause, QueueRow
from support.peer import Peer

from .conftest import Redrive


def status() -> StatusReply:
    return StatusReply(
        seq=1,
        at=0,
        epoch="one",
        environment="staging",
        node="main",
        state="running",
        trouble=None,
        states={"queued": 3, "dead": 1},
        queues=[
            QueueRow(name="bulk", states={"queued": 3, "dead": 1}, ready=1, scheduled=1, held=1)
        ],
        nodes=[NodeRow(name="main", state="up", started_at=0, beat_at=0, version="1", slots=8)],
        paused=[],
        attention=[],
        due=[],
    )


@pytest.mark.parametrize("arguments", [("status", "--json"), ("--json", "status"), ("--json",)])
def test_json_works_before_and_after_the_verb(
    peer: Peer, redrive: Redrive, arguments: tuple[str, ...]
) -> None:
    peer.replies["Status"] = status()
    assert redrive(*arguments).object == plain(status())


def test_config_works_before_and_after_the_verb(
    peer: Peer, redrive: Redrive, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REDRIVE_CONFIG", "/nowhere/config.toml")
    peer.replies["Status"] = status()
    assert redrive("status").code == 78
    assert redrive("--config", folder / "config.toml", "status").code == 0
    assert redrive("status", "--config", folder / "config.toml").code == 0


def test_a_config_that_is_no_toml_is_told_of_once_and_blocks_nothing(
    peer: Peer, redrive: Redrive, folder: Path
) -> None:
    peer.replies["Status"] = status()
    with (folder / "config.toml").open("a") as config:
        config.write('[tasks.x]\ncommand = "open\n')
    said = redrive("status", "--json")
    assert (said.code, said.object) == (0, plain(status()))
    told, hint = said.err.splitlines()
    assert told.startswith(f"redrive: {folder}/config.toml:5: not TOML: ")
    assert "redrive config check" in hint
    assert redrive("config", "check").code == 78


def test_without_a_verb_and_a_terminal_the_status_is_printed(peer: Peer, redrive: Redrive) -> None:
    peer.replies["Status"] = status()
    said = redrive()
    assert said.code == 0
    assert said.out.startswith("staging, node main running")


def test_the_status_tells_of_a_pause_once_and_with_its_reason(peer: Peer, redrive: Redrive) -> None:
    pause = Pause(kind="queue", name="bulk", at=0, by="anna", why="vendor down")
    attention = Attention(kind="paused", text="queue bulk paused by anna")
    peer.replies["Status"] = replace(status(), paused=[pause], attention=[attention])
    said = redrive("status").out
    assert (said.count("queue bulk"), said.count("by anna: vendor down")) == (1, 1)


def test_the_status_tells_what_is_ready_from_what_waits_for_more_than_a_slot(
    peer: Peer, redrive: Redrive
) -> None:
    peer.replies["Status"] = status()
    said = redrive("status").out
    assert "waiting for more than a slot: 1 scheduled for later, 1 held\n" in said
    titles, row = (line.split() for line in said.splitlines() if "READY" in line or "bulk" in line)
    numbers = dict(zip(titles, row, strict=True))
    assert [numbers[t] for t in ("READY", "SCHEDULED", "HELD", "DEAD")] == ["1", "1", "1", "1"]


def test_without_a_daemon_the_exit_code_is_69(redrive: Redrive) -> None:
    said = redrive("status")
    assert (said.code, said.out) == (69, "")
    assert said.err.startswith("redrive: no daemon at ")


def test_an_unknown_verb_names_the_nearest(redrive: Redrive) -> None:
    said = redrive("stauts")
    assert said.code == 2
    assert "there is no command `stauts`; did you mean `redrive status`?" in said.err


def test_an_unknown_verb_that_is_near_to_none_is_told_once_where_they_are(
    redrive: Redrive,
) -> None:
    said = redrive("nix")
    assert said.err == "redrive: there is no command `nix`\n  `redrive --help` explains it\n"


def test_a_missing_choice_is_told_in_one_line(redrive: Redrive) -> None:
    said = redrive("completion")
    assert said.err.splitlines()[0] == "redrive: missing argument '{bash|zsh|fish}'"


def test_an_unknown_verb_of_a_noun_names_the_nearest(redrive: Redrive) -> None:
    assert "did you mean `redrive config check`?" in redrive("config", "chekc").err


def test_an_unknown_option_is_a_sentence_and_a_hint(redrive: Redrive) -> None:
    said = redrive("jobs", "--limt", 3)
    assert said.code == 2
    first, second = said.err.splitlines()
    assert first.startswith("redrive: no such option '--limt'")
    assert second == "  `redrive jobs --help` explains it"


def test_a_noun_alone_explains_itself(redrive: Redrive) -> None:
    said = redrive("config")
    assert said.code == 2
    assert "Usage: redrive config" in said.err


def test_the_versions_are_those_of_everything_underneath(redrive: Redrive) -> None:
    said = redrive("--version")
    assert said.code == 0
    assert [line.split()[0] for line in said.out.splitlines()] == [
        "redrive",
        "SQLite",
        "libzmq",
        "Python",
    ]


def test_a_defect_is_one_line_and_a_report(
    redrive: Redrive, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    monkeypatch.setattr("redrive.cli.status.print_status", lambda *_: 1 / 0)
    said = redrive()
    assert said.code == 70
    assert said.err.startswith("redrive: that is a defect of redrive: ZeroDivisionError")
    (report,) = tmp_path.iterdir()
    assert str(report) in said.err
    assert "ZeroDivisionError" in report.read_text()
    assert report.stat().st_mode & 0o077 == 0


def test_what_the_daemon_says_cannot_steer_the_terminal(peer: Peer, redrive: Redrive) -> None:
    from redrive.protocol.envelope import Refusal

    peer.replies["Status"] = Refusal(code="usage", message="a\x1b]0;title\x07b\x1b[2Jc\x9b1md")
    assert redrive("status").err == "redrive: abcd\n"


def test_a_mistake_elsewhere_in_the_config_does_not_block_the_status(
    peer: Peer, redrive: Redrive, folder: Path
) -> None:
    config = folder / "config.toml"
    config.write_text(config.read_text() + '[tasks.x]\nretry = "nobody"\n')
    peer.replies["Status"] = status()
    assert redrive("status").code == 0
    said = redrive("config", "check")
    assert said.code == 78
    assert f"{config}:5: tasks.x" in said.err


def test_a_reader_that_goes_away_ends_it_without_a_word(folder: Path) -> None:
    environment = {**os.environ, "REDRIVE_CONFIG": str(folder / "config.toml")}
    ours, theirs = os.pipe()
    os.close(ours)
    done = subprocess.run(
        [sys.executable, "-c", "from redrive.cli.main import main; main()", "config", "show"],
        env=environment,
        stdout=theirs,
        stderr=subprocess.PIPE,
        check=False,
    )
    os.close(theirs)
    assert (done.returncode, done.stderr) == (-signal.SIGPIPE, b"")


HEAVY = "sqlalchemy apscheduler textual jinja2 re2 httpx psutil rich uvloop yaml"


@pytest.mark.parametrize("arguments", [["--help"], ["status"], ["jobs"], ["kill", "12"]])
def test_a_command_imports_nothing_heavy(folder: Path, arguments: list[str]) -> None:
    script = (
        "import sys; from redrive.cli.main import run; run(sys.argv[1:]);"
        f" print(*[name for name in '{HEAVY}'.split() if name in sys.modules], file=sys.stderr)"
    )
    environment = {**os.environ, "REDRIVE_CONFIG": str(folder / "config.toml")}
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr.splitlines()[-1] == ""


def every_command() -> list[list[str]]:
    import click

    context = click.Context(root)
    found: list[list[str]] = []
    for name in root.list_commands(context):
        command = root.get_command(context, name)
        inner = command.list_commands(context) if isinstance(command, click.Group) else []
        found += [[name, each] for each in inner] or [[name]]
    return found


@pytest.mark.parametrize("command", every_command(), ids=" ".join)
def test_every_command_explains_itself_with_an_example(
    redrive: Redrive, command: list[str]
) -> None:
    said = redrive(*command, "--help")
    assert said.code == 0
    assert "Examples:\n" in said.out
    assert f"redrive {command[0]}" in said.out.split("Examples:")[1] or "--config" in said.out


def test_every_short_help_is_a_whole_sentence(redrive: Redrive) -> None:
    assert "..." not in redrive("--help").out.split("Begin:")[1]


def typed(folder: Path, line: str) -> subprocess.CompletedProcess[str]:
    """In a shell, which says where output goes."""
    environment = {**os.environ, "REDRIVE_CONFIG": str(folder / "config.toml")}
    return subprocess.run(
        ["bash", "-c", f"{sys.executable} -m redrive {line}"],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("command", ["config show", "config check --json", "--help", "jobs --help"])
def test_output_that_cannot_be_written_is_no_defect(folder: Path, command: str) -> None:
    done = typed(folder, f"{command} > /dev/full")
    assert done.returncode == 1
    assert done.stderr.splitlines()[0] == (
        "redrive: the output could not be written: No space left on device"
    )
    assert "Exception ignored" not in done.stderr


def test_with_standard_output_closed_nothing_is_begun(folder: Path) -> None:
    done = typed(folder, "cancel 12 >&-")
    assert (done.returncode, done.stderr.splitlines()[0]) == (
        1,
        "redrive: standard output is closed; nothing was done",
    )


def test_with_standard_input_or_error_closed_the_code_is_the_same(folder: Path) -> None:
    assert typed(folder, "cancel 12 13 <&-").returncode == 2
    assert typed(folder, "config show 2>&-").returncode == 0
    assert typed(folder, "status 2>&-").returncode == 69


def test_what_the_encoding_does_not_have_is_no_defect(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONIOENCODING", "latin-1")
    told = typed(folder, "classify 'a → b'")
    assert (told.returncode, "a ? b" in told.stdout) == (0, True), told.stderr
    told = typed(folder, "classify --json 'a → b'")
    assert json.loads(told.stdout)["message"] == "a → b"


def test_a_file_that_cannot_be_written_is_no_defect(folder: Path) -> None:
    with (folder / "config.toml").open("a") as config:
        config.write('[bus]\ncurve = "/proc/keys"\n')
    done = typed(folder, "keys new anna")
    assert done.returncode == 1
    assert done.stderr.startswith("redrive: /proc/keys")
    assert "defect" not in done.stderr


def test_the_help_names_every_exit_code(redrive: Redrive) -> None:
    told = redrive("--help").out.split("Exit codes:")[1]
    assert {int(line.split()[0]) for line in told.splitlines() if line.strip()} == {*Exit, 130}


def test_a_wrong_value_is_told_without_the_marks_of_the_usage_line(redrive: Redrive) -> None:
    assert redrive("enqueue", "parse", "x").err.startswith("redrive: 'x' is not KEY=VALUE\n")
    assert redrive("jobs", "--limit", 0).err.startswith(
        "redrive: --limit: '0' is no number such as 1, 2 or 50\n"
    )
    assert "[x>=1]" not in redrive("jobs", "--help").out


def test_a_word_that_is_not_among_the_choices_is_told_like_everything_else(
    redrive: Redrive,
) -> None:
    assert redrive("completion", "nosh").err == (
        "redrive: 'nosh' is not one of 'bash', 'zsh', 'fish'\n"
        "  `redrive completion --help` explains it\n"
    )
