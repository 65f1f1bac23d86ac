"""What is installed: the public names, what importing them costs, and the wheel by itself."""

from __future__ import annotations

import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from zipfile import ZipFile

import pytest

import redrive
from support.daemon import BASE, eventually
from support.markdown import ROOT

HEAVY = {"alembic", "apscheduler", "jinja2", "psycopg", "re2", "sqlalchemy", "textual", "zmq"}


def test_the_public_names_are_these() -> None:
    assert redrive.__all__ == [
        "AsyncClient",
        "AsyncOutbox",
        "Cancelled",
        "Client",
        "CurrentJob",
        "Outbox",
        "Permanent",
        "RedriveError",
        "Snooze",
        "Transient",
        "__version__",
        "current_job",
    ]
    for name in redrive.__all__:
        assert getattr(redrive, name)


def test_the_names_for_tests_of_tasks_are_these() -> None:
    from redrive import testing

    own = {
        name
        for name, thing in vars(testing).items()
        if getattr(thing, "__module__", None) == testing.__name__ and not name.startswith("_")
    }
    assert own == {"Rehearsed", "Trial", "rehearse"}


@pytest.mark.parametrize(
    ("statement", "allowed"),
    [
        ("import redrive", set[str]()),
        ("from redrive import current_job, Permanent, Transient, Snooze", set[str]()),
        ("import redrive.cli.main", set[str]()),
        ("from redrive import Client, AsyncClient", {"zmq"}),
        ("import redrive.testing", {"jinja2", "re2"}),
    ],
)
def test_importing_leaves_out_what_it_does_not_need(statement: str, allowed: set[str]) -> None:
    asked = f"{statement}; import json, sys; print(json.dumps(list(sys.modules)))"
    said = subprocess.check_output([sys.executable, "-c", asked], text=True)
    loaded = {name.partition(".")[0] for name in json.loads(said)}
    assert loaded & HEAVY <= allowed


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The programs of the wheel, in an environment that borrows everything but redrive."""
    folder = tmp_path_factory.mktemp("installed")
    venv.create(folder)
    python = folder / "bin/python"
    pip = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "--python", str(python), "install", "--no-deps", "--no-index", str(wheel)],
        check=True,
    )
    (site,) = folder.glob("lib/python*/site-packages")
    (site / "borrowed.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return folder / "bin"


def said_by(*words: str | Path, cwd: Path) -> str:
    return subprocess.check_output(words, cwd=cwd, text=True, stderr=subprocess.STDOUT)


def test_the_wheel_holds_the_three_packages_and_nothing_else(wheel: Path) -> None:
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    roots = {name.partition("/")[0] for name in names}
    about = f"redrive-{redrive.__version__}.dist-info"
    assert roots == {"redrive", "redrived", "redrive_tui", about}
    sources = ("shared/redrive", "daemon/redrived", "tui/redrive_tui")
    for source in sources:
        folder = ROOT / source
        for path in folder.rglob("*"):
            if path.is_file() and "__pycache__" not in path.parts:
                assert str(path.relative_to(folder.parent)) in names


def test_both_programs_know_their_version(installed: Path, tmp_path: Path) -> None:
    version = redrive.__version__
    first, *stands_on = said_by(installed / "redrive", "--version", cwd=tmp_path).splitlines()
    assert first == f"redrive {version}"
    assert [line.split()[0] for line in stands_on] == ["SQLite", "libzmq", "Python"]
    assert said_by(installed / "redrived", "--version", cwd=tmp_path) == f"redrived {version}\n"


def test_the_wheel_runs_without_the_source_tree(installed: Path, tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(BASE + '[tasks.hello]\ncommand = ["echo", "hello"]\n')
    where = "import redrive, redrive_tui.app as app; print(redrive.__file__, app.__file__)"
    assert str(ROOT) not in said_by(installed / "python", "-c", where, cwd=tmp_path)
    assert "is right: 1 task," in said_by(installed / "redrive", "config", "check", cwd=tmp_path)
    unit = said_by(installed / "redrive", "systemd", "install", "--print", cwd=tmp_path)
    assert f"ExecStart={installed}/redrived" in unit

    with (tmp_path / "log").open("wb") as log:
        daemon = subprocess.Popen([installed / "redrived"], cwd=tmp_path, stdout=log, stderr=log)
    try:
        eventually(lambda: "is up" in (tmp_path / "log").read_text(), "the daemon is up")
        told = said_by(installed / "redrive", "enqueue", "hello", "--wait", cwd=tmp_path)
        assert "job 1 done" in told
    finally:
        daemon.terminate()
        daemon.wait()
