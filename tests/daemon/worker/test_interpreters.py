"""Pools run on the application's interpreter, whatever it is and with nothing of ours in it."""

import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.interpreters import bare_venv
from support.workers import workshop

OLDEST = (3, 9)


def _interpreters() -> list[str]:
    """Every Python this machine has, the one of these tests aside."""
    names = [f"python3.{minor}" for minor in range(6, 16)]
    found = [path for name in names if (path := shutil.which(name))]
    installed = Path.home().glob(".pyenv/versions/*/bin/python3")
    return sorted({*found, *(str(path) for path in installed)})


def _version(python: str) -> tuple[int, int] | None:
    command = [python, "-c", "import sys; print(*sys.version_info[:2])"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    if answer.returncode:
        return None
    major, minor = answer.stdout.split()
    return int(major), int(minor)


VERSIONS = {version: python for python in _interpreters() if (version := _version(python))}
USABLE = [python for version, python in sorted(VERSIONS.items()) if version >= OLDEST]
TOO_OLD = [python for version, python in sorted(VERSIONS.items()) if (3, 6) <= version < OLDEST]


async def test_a_bare_venv_lends_the_handlers_half_of_redrive(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "venv")
    async with workshop(tmp_path, python=python) as shop:
        found = await shop.result("environment")
        assert found["redrive"].endswith("shared/redrive/__init__.py")
        assert not {"msgspec", "redrived"} & set(found["modules"])
        assert await shop.result("facts") == [2, 1, 3, {}, None, None, None]

        failure = (await shop.run("use_a_client")).failure
        assert failure is not None
        assert failure.names[0] == "ModuleNotFoundError"
        assert "redrive.blocking needs the redrive package" in failure.message


async def test_redrive_is_lent_to_what_multiprocessing_starts_too(tmp_path: Path) -> None:
    python = bare_venv(tmp_path / "venv")
    async with workshop(tmp_path, python=python) as shop:
        assert await shop.result("square_elsewhere", numbers=[1, 2, 3]) == [1, 4, 9]


@pytest.mark.parametrize("python", USABLE)
async def test_every_python_from_3_9_on_runs_handlers(python: str, tmp_path: Path) -> None:
    async with workshop(tmp_path, python=python) as shop:
        began, ended = tmp_path / "began", tmp_path / "ended"
        shop.ear.answer = lambda _: True

        assert await shop.result("echo", a=1) == {"a": 1}
        assert await shop.result("echo_later", a=1) == {"a": 1}
        assert await shop.result("claim", key="mail") is True
        assert await shop.result("go_through", items=["a"]) == ["a"]
        assert (await shop.run("nested", depth=4_000)).outcome == "permanent"
        assert shop.output(await shop.run("print_line", text="said")) == "said\n"
        assert "INFO from the job" in shop.output(await shop.run("log_something"))
        assert (await shop.run("say_outright", what="transient")).outcome == "transient"
        failure = (await shop.run("fail", message="no")).failure
        assert failure is not None
        assert "in fail" in (failure.traceback or "")

        job = shop.give("sleep", began=str(began), ended=str(ended))
        await shop.ear.until(began.exists)
        shop.worker.cancel(job, job + 1000)
        assert (await shop.ear.report_of(job)).outcome == "cancelled"


@pytest.mark.parametrize("python", TOO_OLD)
async def test_an_older_python_is_refused_with_a_sentence(python: str, tmp_path: Path) -> None:
    async with workshop(tmp_path, wait=False, python=python) as shop:
        await shop.ear.until(lambda: shop.pool.trouble)

        assert "a pool needs Python 3.9 or newer" in shop.pool.trouble


@pytest.mark.parametrize(
    ("settings", "says"),
    [
        ({"python": "/no/such/python"}, "/no/such/python"),
        ({"python": "/bin/false"}, "it exited with 1"),
    ],
)
async def test_an_interpreter_that_does_not_start_is_trouble_that_can_be_read(
    tmp_path: Path, settings: dict[str, Any], says: str
) -> None:
    async with workshop(tmp_path, wait=False, **settings) as shop:
        await shop.ear.until(lambda: shop.pool.trouble)

        assert says in shop.pool.trouble
