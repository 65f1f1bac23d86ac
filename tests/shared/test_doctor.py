from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from redrive import filesystems, interpreters, room
from redrive.config import load
from redrive.doctor import local_checks
from redrive.programs import program_checks
from redrive.protocol.rows import Check
from support.daemon import eventually
from support.processes import is_alive

CONFIG = """
[daemon]
state_dir = "state"
runtime_dir = "run"
[pools.default]
path = ["app"]
[tasks.work]
python = "handlers:work"
"""


def check(folder: Path, name: str, config: str = CONFIG) -> Check:
    """The first that has something against it, else the first of that name."""
    file = folder / "config.toml"
    file.write_text(config)
    found = [each for each in local_checks(load(file, {}), {}) if each.name == name]
    return min(found, key=lambda each: each.ok)


@pytest.fixture
def app(tmp_path: Path) -> Path:
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "handlers.py").write_text("import redrive\ndef work(): ...\n")
    return tmp_path


def test_a_fresh_installation_is_well(app: Path) -> None:
    (app / "config.toml").write_text(CONFIG)
    assert [each for each in local_checks(load(app / "config.toml", {}), {}) if not each.ok] == []


@pytest.mark.parametrize(
    ("handler", "told", "hint"),
    [
        ("def other(): ...", "has no attribute 'work'", "handlers was found and has no such name"),
        (
            "import nothing_like_it",
            "No module named 'nothing_like_it'",
            (
                "handlers itself was found: install what it needs for that interpreter, or add its"
                " folder to [pools.default] path"
            ),
        ),
        ("print('finds')\n1 / 0", "ZeroDivisionError", "handlers was found and fails"),
        ("import sys\nsys.exit('no licence')", "no licence", "handlers was found and fails"),
        ("import sys\nsys.exit()", "it said nothing", "handlers was found and fails"),
        ("import os\nos._exit(0)", "it ended with 0 in the import", "handlers was found and fails"),
    ],
)
def test_a_pool_that_does_not_find_its_functions_says_why(
    app: Path, handler: str, told: str, hint: str
) -> None:
    (app / "app" / "handlers.py").write_text(handler)
    found = check(app, "pool default")
    assert not found.ok
    assert told in found.text
    assert hint in found.hint


@pytest.mark.parametrize("program", ["/bin/true", "/bin/false"])
def test_a_program_that_is_no_python_is_none(app: Path, program: str) -> None:
    config = CONFIG.replace('path = ["app"]', f'python = "{program}"')
    found = check(app, "pool default", config)
    assert not found.ok
    assert "in its start: it said nothing" in found.text
    assert "[pools.default] python must name a Python" in found.hint


def test_a_module_that_never_ends_its_import_is_named(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(interpreters, "PATIENCE", 2.0)
    (app / "app" / "handlers.py").write_text(
        "import subprocess\nprint('loud', flush=True)\n"
        "started = subprocess.Popen(['sleep', '600'])\n"
        f"open('{app}/pid', 'w').write(str(started.pid))\nstarted.wait()"
    )
    found = check(app, "pool default")
    assert not found.ok
    assert "the import of handlers has not ended after 2 s" in found.text
    assert "import sys" not in found.text + found.hint
    eventually(lambda: not is_alive(int((app / "pid").read_text())), "what it started is gone")


def test_what_lies_beside_the_config_is_not_found_by_accident(app: Path) -> None:
    (app / "app" / "handlers.py").rename(app / "handlers.py")
    found = check(app, "pool default")
    assert "No module named 'handlers'" in found.text
    assert "[pools.default] path must name the folders of its modules" in found.hint


def test_an_interpreter_that_is_not_there_is_named(app: Path) -> None:
    config = CONFIG.replace('path = ["app"]', 'python = "/nowhere/python"')
    assert "/nowhere/python does not run" in check(app, "pool default", config).text


def test_an_interpreter_without_redrive_is_lent_ours(app: Path) -> None:
    config = CONFIG.replace("[pools.default]", f'[pools.default]\npython = "{sys.executable}"')
    assert check(app, "pool default", config).ok


def test_a_state_folder_open_to_others_is_found(app: Path) -> None:
    (app / "state").mkdir(mode=0o700)
    assert check(app, "state_dir").ok
    (app / "state").chmod(0o755)
    found = check(app, "state_dir")
    assert (found.ok, found.hint) == (False, f"chmod 700 {app}/state")


@pytest.mark.parametrize("name", ["state_dir", "runtime_dir"])
@pytest.mark.parametrize(
    ("folder", "reason"),
    [("/proc/nowhere", "No such file or directory"), ("in_the_way", "Not a directory")],
)
def test_a_folder_that_cannot_be_made_is_found(
    app: Path, name: str, folder: str, reason: str
) -> None:
    (app / "in_the_way").touch()
    default = {"state_dir": '"state"', "runtime_dir": '"run"'}[name]
    for deeper in ("", "/deeper"):
        config = CONFIG.replace(f"{name} = {default}", f'{name} = "{folder}{deeper}"')
        found = check(app, name, config)
        assert not found.ok
        assert reason in found.text
        assert f"`{name}`" in found.hint


def test_a_folder_that_can_be_made_is_not_made_by_looking(app: Path) -> None:
    assert check(app, "state_dir").ok
    assert sorted(path.name for path in app.iterdir()) == ["app", "config.toml"]


def test_a_folder_on_a_network_file_system_is_found(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mounts = app / "mountinfo"
    mounts.write_text(f"1 1 0:1 / {app} rw - fuse.glusterfs host:/ rw\n")
    monkeypatch.setattr(filesystems, "MOUNTS", mounts)
    found = check(app, "state_dir")
    assert found.text.endswith("is on a network file system (fuse.glusterfs)")
    assert not found.ok


def test_a_store_open_to_others_is_found(app: Path) -> None:
    (app / "state").mkdir(mode=0o700)
    store = app / "state" / "redrive.db"
    store.touch(0o600)
    assert check(app, "store").ok
    store.chmod(0o644)
    assert not check(app, "store").ok


def test_a_disk_that_is_nearly_full_is_found(app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room, "LOW", 1 << 62)
    (app / "state" / "outputs").mkdir(parents=True, mode=0o700)
    (app / "state" / "redrive.db").write_bytes(b"x" * 10_000)
    (app / "state" / "outputs" / "1.1.out").write_bytes(b"x" * 3_000_000)
    found = check(app, "disk")
    assert not found.ok
    assert f"{app}/state/outputs has the most, 3.0 MB, 3.0 MB in " in found.text
    assert f"{app}/state/outputs/1.1.out" in found.text
    assert "limits.output" in found.hint


def test_what_others_have_on_a_disk_is_not_gone_through(
    app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(room, "LOW", 1 << 62)
    found = check(app, "disk")  # the state folder is still to be made
    assert (found.ok, found.text.endswith(f"are free in {app}")) == (False, True)


COMMANDS = """
[tasks.plain]
command = ["no-such-program", "x"]
[tasks.absolute]
command = ["/no/such/program"]
[tasks.beside]
command = ["./tool"]
[tasks.shell]
command = "no-such-program | sort"
[[hooks]]
on = ["dead"]
command = ["no-such-notify"]
"""
FINE = """
[tasks.plain]
command = ["sort", "x"]
[tasks.absolute]
command = ["/bin/sh"]
[tasks.beside]
command = ["./tool"]
[tasks.elsewhere]
command = ["tool"]
env = { PATH = "bin" }
[tasks.template]
command = ["{{ args.program }}"]
[tasks.builtin]
command = "cd /tmp && ls"
[tasks.word]
command = "if true; then echo; fi"
[tasks.assigned]
command = "A=1 no-such-program"
[[hooks]]
on = ["dead"]
command = ["sort"]
"""


def test_a_program_that_is_not_there_is_found(app: Path) -> None:
    file = app / "config.toml"
    file.write_text(COMMANDS)
    found = {each.name: each for each in local_checks(load(file), os.environ) if not each.ok}
    names = ("task plain", "task absolute", "task beside", "task shell", "hook 0")
    assert found.keys() >= {*names}
    assert all("there is no program" in found[name].text for name in names)
    assert "[tasks.absolute]" in found["task absolute"].hint


def test_programs_that_are_there_or_cannot_be_known_are_no_finding(app: Path) -> None:
    (app / "bin").mkdir()
    for tool in (app / "tool", app / "bin" / "tool"):
        tool.touch(mode=0o755)
    file = app / "config.toml"
    file.write_text(FINE)
    assert list(program_checks(load(file).config)) == []


def test_a_config_whose_programs_are_missing_is_right(app: Path) -> None:
    file = app / "config.toml"
    file.write_text(COMMANDS)
    assert not load(file, look_around=True).problems


@pytest.mark.parametrize(
    ("version", "is_named"),
    [
        ((3, 40, 1), True),
        ((3, 44, 6), False),
        ((3, 50, 6), True),
        ((3, 50, 7), False),
        ((3, 51, 2), True),
        ((3, 51, 3), False),
    ],
)
def test_a_sqlite_with_the_wal_bug_is_named(
    app: Path, monkeypatch: pytest.MonkeyPatch, version: tuple[int, int, int], is_named: bool
) -> None:
    monkeypatch.setattr("sqlite3.sqlite_version_info", version)
    assert ("only one of its connections" in check(app, "sqlite").text) == is_named
