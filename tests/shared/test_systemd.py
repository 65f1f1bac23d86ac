from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from redrive import systemd
from redrive.config import Config
from redrive.config.sections import Daemon
from redrive.errors import Exit, NotAllowed, UsageProblem
from redrive.systemd import Place, install, quoted, unit

SHIPPED = Path(__file__).parents[2] / "daemon" / "systemd"
OPERATIONS = Path(__file__).parents[2] / "docs" / "operations.md"
PLACE = Place(config="/etc/redrive/config.toml")
CONFIG = Config(path="/etc/redrive/config.toml", folder="/etc/redrive")

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd is not installed here"
)


@pytest.mark.parametrize(
    ("profile", "name"), [("general", "redrived.service"), ("strict", "redrived-strict.service")]
)
def test_the_units_in_the_repository_are_those_that_are_installed(
    profile: systemd.Profile, name: str
) -> None:
    assert (SHIPPED / name).read_text() == unit(profile, PLACE)


@needs_systemd
@pytest.mark.parametrize("profile", ["general", "strict", "user"])
def test_systemd_understands_every_line(tmp_path: Path, profile: systemd.Profile) -> None:
    path = tmp_path / "redrived.service"
    place = replace(PLACE, daemon=sys.executable, client=sys.executable, user="root")
    path.write_text(unit(profile, place))
    found = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", str(path)],
        capture_output=True,
        text=True,
        check=False,
    )
    about_us = [line for line in found.stderr.splitlines() if "redrived" in line]
    assert about_us == []


@needs_systemd
@pytest.mark.parametrize(("profile", "threshold"), [("strict", 25), ("general", 60)])
def test_the_exposure_stays_below_what_was_measured(
    tmp_path: Path, profile: systemd.Profile, threshold: int
) -> None:
    path = tmp_path / "redrived.service"
    path.write_text(unit(profile, PLACE))
    command = ["systemd-analyze", "security", "--offline=true", f"--threshold={threshold}"]
    found = subprocess.run([*command, str(path)], capture_output=True, text=True, check=False)
    assert found.returncode == 0, found.stdout[-300:] + found.stderr


def test_the_strict_unit_forbids_nothing_the_daemon_itself_needs() -> None:
    """Seen under a real systemd: without @resources libzmq aborts, and the daemon with it."""
    settings = [line for line in unit("strict", PLACE).splitlines() if not line.startswith("#")]
    assert "SystemCallFilter=~@privileged" in settings
    assert not any("@resources" in line for line in settings)


@pytest.mark.parametrize("profile", ["general", "strict", "user"])
def test_systemd_tries_again_without_end_and_not_in_haste_but_for_what_stays_wrong(
    profile: systemd.Profile,
) -> None:
    settings = unit(profile, PLACE).splitlines()
    assert "Restart=on-failure" in settings
    assert "StartLimitIntervalSec=0" in settings  # else it gives up after a few
    assert "RestartSec=5" in settings
    assert f"RestartPreventExitStatus={Exit.CONFIG:d} {Exit.UNAVAILABLE:d}" in settings


@pytest.mark.parametrize("profile", ["general", "strict"])
def test_the_folder_of_the_config_has_the_mode_that_the_docs_give_it(
    profile: systemd.Profile,
) -> None:
    """Where the two differ, systemd says so at each start and each reload."""
    made = re.search(r"install -d .* -m (\d+) /etc/redrive\n", OPERATIONS.read_text())
    assert made is not None
    assert f"ConfigurationDirectoryMode={made[1]}" in unit(profile, PLACE).splitlines()


@pytest.mark.parametrize("profile", ["general", "strict"])
def test_a_reload_leaves_the_folder_of_the_sockets_open_to_the_groups(
    profile: systemd.Profile,
) -> None:
    """systemd sets the mode of the folder before each of the unit's commands."""
    assert "RuntimeDirectoryMode=0711" in unit(profile, PLACE).splitlines()


@needs_systemd
def test_the_strict_unit_lets_the_daemon_give_its_sockets_to_groups() -> None:
    allowed: set[str] = set()
    for line in unit("strict", PLACE).splitlines():
        name, _, value = line.partition("=")
        if name == "SystemCallFilter":  # later lines add to what is allowed, or take away
            calls = calls_of(value.removeprefix("~"))
            allowed = allowed - calls if value.startswith("~") else allowed | calls
    assert {"chown", "fchownat"} <= allowed
    assert "setuid" not in allowed  # whatever else is privileged stays away


def calls_of(name: str) -> set[str]:
    """The system calls of a set of systemd's, those of the sets within it included."""
    if not name.startswith("@"):
        return {name}
    command = ["systemd-analyze", "syscall-filter", name]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    words = [line.strip() for line in found.stdout.splitlines()[1:]]
    return {call for word in words if word and word[0] != "#" for call in calls_of(word)}


def test_a_user_gets_a_service_of_their_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    installed = install("user", CONFIG)
    text = Path(installed.path).read_text()
    assert installed.path == str(tmp_path / ".config/systemd/user/redrived.service")
    assert "WantedBy=default.target" in text
    assert "User=" not in text
    assert installed.next[0] == "systemctl --user daemon-reload"


def test_the_folders_a_config_names_stay_writable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(systemd, "SYSTEM_UNITS", tmp_path)
    python = tmp_path / "venv/bin/python"
    monkeypatch.setattr(sys, "executable", str(python))
    monkeypatch.setattr(sys, "base_prefix", "/usr")
    daemon = Daemon(state_dir="/srv/my jobs", runtime_dir="/run/redrive")
    installed = install("strict", replace(CONFIG, daemon=daemon))
    text = Path(installed.path).read_text()
    assert 'ReadWritePaths="/srv/my jobs"\n' in text
    assert f"ExecStart={python} -m redrived --config /etc" in text
    assert not [note for note in installed.notes if "state_dir" in note]


@pytest.mark.parametrize(("user", "is_told"), [("root", False), ("no-such-user", True)])
def test_a_user_that_is_missing_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, user: str, is_told: bool
) -> None:
    monkeypatch.setattr(systemd, "SYSTEM_UNITS", tmp_path)
    notes = install("general", CONFIG, user=user).notes
    assert any(f"no user {user}" in note for note in notes) == is_told


def test_homes_and_the_strict_unit_do_not_go_together() -> None:
    config = replace(CONFIG, path="/home/anna/config.toml")
    with pytest.raises(UsageProblem, match="is in a home"):
        install("strict", config)


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A machine below a folder: a home with an interpreter in it, and a venv elsewhere."""
    for folder in ("home/anna", "opt/venv/bin", "usr/bin", "units"):
        (tmp_path / folder).mkdir(parents=True)
    for python in ("home/anna/python3", "usr/bin/python3"):
        (tmp_path / python).touch()
    monkeypatch.setattr(systemd, "HOMES", (tmp_path / "home",))
    monkeypatch.setattr(systemd, "SYSTEM_UNITS", tmp_path / "units")
    monkeypatch.setattr(sys, "executable", str(tmp_path / "opt/venv/bin/python"))
    monkeypatch.setattr(sys, "base_prefix", str(tmp_path / "usr"))
    return tmp_path


LINKS: dict[str, dict[str, str]] = {
    "straight": {"opt/venv/bin/python": "../../../home/anna/python3"},
    "by several links": {
        "opt/venv/bin/python": "python3",
        "opt/venv/bin/python3": "{machine}/home/anna/python3",
    },
    "by a folder": {"opt/anna": "../home/anna", "opt/venv/bin/python": "../../anna/python3"},
    "only on the way": {
        "opt/venv/bin/python": "{machine}/home/anna/link",
        "home/anna/link": "{machine}/usr/bin/python3",
    },
    "in a home elsewhere": {"home/bert": "../usr", "opt/venv/bin/python": "{machine}/home/bert/x"},
}


@pytest.mark.parametrize("way", LINKS)
def test_a_venv_whose_interpreter_is_in_a_home_does_not_go_with_the_strict_unit(
    machine: Path, way: str
) -> None:
    for link, target in LINKS[way].items():
        (machine / link).symlink_to(target.format(machine=machine))
    with pytest.raises(
        UsageProblem, match=f"python leads to {machine}/home/.*, which is in a home"
    ):
        install("strict", CONFIG)
    assert list((machine / "units").iterdir()) == []


def test_homes_that_lie_elsewhere_are_homes_all_the_same(machine: Path) -> None:
    (machine / "home").rename(machine / "var")
    (machine / "home").symlink_to("var")
    (machine / "opt/venv/bin/python").symlink_to(machine / "var/anna/python3")
    with pytest.raises(UsageProblem, match=f"leads to {machine}/var/anna/python3"):
        install("strict", CONFIG)


def test_a_venv_of_copies_needs_the_interpreter_it_was_made_of(
    machine: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (machine / "opt/venv/bin/python").touch()
    monkeypatch.setattr(sys, "base_prefix", str(machine / "home/anna"))
    with pytest.raises(UsageProblem, match="/home/anna is in a home") as refused:
        install("strict", CONFIG)
    assert "/usr/bin/python3 -m venv" in refused.value.hint


def test_a_venv_of_the_systems_interpreter_goes_with_the_strict_unit(machine: Path) -> None:
    (machine / "opt/venv/bin/python").symlink_to("python3")
    (machine / "opt/venv/bin/python3").symlink_to(machine / "usr/bin/python3")
    install("strict", CONFIG)
    assert (machine / "units" / systemd.NAME).exists()


def test_who_may_not_write_there_is_told_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(NotAllowed, match="cannot be written") as refused:
        install("general", CONFIG)
    assert "--user" in refused.value.hint


@pytest.mark.parametrize(
    ("word", "written"),
    [("/a/b-c", "/a/b-c"), ("/a b", '"/a b"'), ("/$HOME/%h", '"/$$HOME/%%h"'), ('"', '"\\""')],
)
def test_a_path_is_written_as_systemd_reads_it(word: str, written: str) -> None:
    assert quoted(word) == written


def test_every_line_is_a_setting_or_says_why() -> None:
    for profile in ("general", "strict", "user"):
        for line in unit(profile, PLACE).splitlines():
            assert re.fullmatch(r"(\[\w+\]|#.*|\w+=.*|)", line)
