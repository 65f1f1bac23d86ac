"""A spoilt file keeps nobody from the daemon it names, and never leads to another one."""

from __future__ import annotations

from pathlib import Path

import pytest

from redrive.config import ConfigRejected, Loaded, load, load_client

GOOD = '[daemon]\nruntime_dir = "/run/here"\n[bus]\nviewers = "staff"\n'


def client(folder: Path, text: str | bytes) -> Loaded:
    path = folder / "config.toml"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return load_client(path, {})


SPOILT: dict[str, str | bytes] = {
    "an open text": GOOD + '[tasks.t]\ncommand = "x\n',
    "an open text of many lines": GOOD + '[tasks.t]\ncommand = """x\n\n[tasks.u]\n',
    "an open header": "[tasks.t\ncommand = 'x'\n" + GOOD,
    "an open list before it": "[tasks.t]\ncommand = [\n" + GOOD,
    "a table twice": GOOD + "[tasks.t]\n[tasks.t]\n",
    "no TOML at all": GOOD + "[queues]\nthis is no TOML",
    "bytes that are no text": GOOD.encode() + b"[queues.x] # \xff\n",
    "levels without end": GOOD + "[queues]\nx = " + "[" * 100,
    "a number without end": GOOD + "[queues.x]\npriority = " + "9" * 5000,
}


@pytest.mark.parametrize("kind", SPOILT)
def test_clients_read_their_tables_of_a_file_that_is_no_toml(tmp_path: Path, kind: str) -> None:
    loaded = client(tmp_path, SPOILT[kind])
    assert loaded.config.daemon.runtime_dir == "/run/here"
    assert loaded.config.bus.viewers == "staff"
    with pytest.raises(ConfigRejected) as refused:
        load(tmp_path / "config.toml", {})
    assert list(loaded.problems) == refused.value.problems


MISLEADING: dict[str, str | bytes] = {
    "the address is spoilt": '[daemon]\nruntime_dir = "/run/here\n',
    "a line beside it is": '[daemon]\nruntime_dir = "/run/here"\nname = \n',
    "the table is there twice": GOOD + '[tasks.t]\ncommand = """\n[daemon]\nname = "x"\n',
    "before the first table": "daemon = {\n[bus]\n",
    "its bytes are no text": b'[daemon]\nruntime_dir = "/run/\xff"\n',
    "it may be misspelt": '[daemon]\nruntim_dir = "/run/here"\n',
    "it is of another type": "[bus]\nquery = 5\n",
    "it comes from a variable that is not set": '[daemon]\nruntime_dir = "${NOWHERE}"\n',
    "the table is no table": "daemon = 5\n",
    "so much is wrong that not all was read": "[console]\n"
    + "".join(f"a{n} = 1\n" for n in range(200)),
}


@pytest.mark.parametrize("kind", MISLEADING)
def test_what_may_lead_to_another_daemon_is_refused(tmp_path: Path, kind: str) -> None:
    with pytest.raises(ConfigRejected) as refused:
        client(tmp_path, MISLEADING[kind])
    assert "--config FILE" in refused.value.hint


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("[daemon]\nconcurrency = 0", "daemon.concurrency"),
        ('[daemon]\nlog_level = "loud"', "daemon.log_level"),
        ("[bus]\noperators = 5", "bus.operators"),
        ('[console]\ncolour = "blu"', "console.colour"),
        ('[console]\ncolor = "blue"', "console.color"),
        ("console = 5", "console"),
        ('[console]\nenvironment = "${NOWHERE}"', "console.environment"),
    ],
)
def test_a_mistake_that_leads_nowhere_else_is_told_and_survived(
    tmp_path: Path, text: str, problem: str
) -> None:
    loaded = client(tmp_path, text)
    assert [each.key for each in loaded.problems] == [problem]


def test_a_good_file_has_no_problems(tmp_path: Path) -> None:
    assert client(tmp_path, GOOD + "[tasks.t]\nnonsense = 1\n").problems == ()
