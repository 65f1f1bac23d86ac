"""What README.md and docs/ say is so: their commands run, their links lead somewhere, and the
keys, commands and events they name exist.

`# exits 1` behind a command says what it exits with, when that is not 0; a block whose first
line is `# NAME` is that file.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
from collections.abc import Iterator
from itertools import takewhile
from pathlib import Path

import pytest

import redrive
from redrive.config import ConfigRejected, load
from redrive.config.spoken import (
    OF_A_FAILURE,
    OF_A_HOOK,
    OF_A_JOB,
    OF_A_KEY,
    OF_A_RUN,
    OF_A_SLOT,
)
from redrive.event_types import EVENT_TYPES, REDRIVE_PREFIX
from redrive.sandbox import Sandbox
from support.commands_doc import verbs
from support.configuration_doc import comments, fields, places
from support.daemon import Daemon, free_port
from support.markdown import PAGES, ROOT, blocks, code, files, headings, links, shell_lines
from support.pages import DOCS, WRITTEN

README = ROOT / "README.md"
CONCEPTS = DOCS / "concepts.md"
# These pages are lessons: what they say is typed in its order. The others show single commands.
COMMAND = re.compile(r"^(?:\w+ \"\$\(|sudo (?:-u \w+ )?)?redrive (.+?)(?:\)\".*)?$")
LESSONS = [README, DOCS / "handlers.md", DOCS / "http.md", DOCS / "pipelines.md"]
PORT = "8383"  # of the lessons; typed, it is one that is free here


def by_name(page: Path) -> str:
    return str(page.relative_to(ROOT))


def every_page() -> pytest.MarkDecorator:
    return pytest.mark.parametrize("page", PAGES, ids=by_name)


# ---- commands -----------------------------------------------------------------------------------


@pytest.fixture
def lesson(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Daemon]:
    """The page's files in an empty folder, and the daemon its config asks for."""
    for name, text in files(request.param).items():
        (tmp_path / name).write_text(text.replace(PORT, str(free_port())))
    token = tmp_path / "token"
    token.touch(0o600)
    token.write_text("0123456789abcdef")
    daemon = Daemon(tmp_path, base=(tmp_path / "config.toml").read_text()).start()
    yield daemon
    daemon.stop()


@pytest.mark.parametrize(
    ("page", "lesson"), [(page, page) for page in LESSONS], ids=by_name, indirect=["lesson"]
)
def test_every_command_of_a_lesson_does_what_it_says(page: Path, lesson: Daemon) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONDONTWRITEBYTECODE": "1"}
    port = re.search(r'listen = ".*:(\d+)"', lesson.config.read_text())
    typed = 0
    for line in shell_lines(page):
        if line.text.startswith("make ") or line.text == "redrive up":
            continue  # other tests hold these two; the daemon is up
        done = subprocess.run(
            ["sh", "-c", line.text.replace(PORT, port[1] if port else PORT)],
            cwd=lesson.folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )
        said = f"{line.text}\n{done.stdout}{done.stderr}"
        assert done.returncode == line.exits, said
        assert "Traceback" not in done.stderr, said
        typed += 1
    assert typed > 5


def single_commands() -> list[str]:
    """What stands behind `redrive` in the lines of the other pages."""
    lines = (line.text for page in PAGES if page not in LESSONS for line in shell_lines(page))
    found = (COMMAND.search(line) for line in lines)
    return [command[1] for command in found if command]


@pytest.mark.parametrize("command", sorted({*single_commands()}))
def test_every_other_command_can_be_typed_as_it_stands(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in re.findall(r"\b[\w-]+\.(?:yaml|ndjson)\b", command):
        Path(name).touch()
    words = shlex.split(command.replace("$(date +%F)", "today"), comments=True)
    words = list(takewhile(lambda word: word not in (">", "|"), words))
    if words[0] == "--config":  # it may stand before the verb, as the tests of the root show
        words = words[2:]
    known = dict(verbs())
    name = next((name for name in (" ".join(words[:2]), words[0]) if name in known), "status")
    with known[name].make_context(name, words[len(name.split()) :]):
        pass  # click has read every word of it


def test_every_example_in_the_help_is_on_the_page_of_commands() -> None:
    shown = {line.text for line in shell_lines(DOCS / "commands.md")}
    for name, verb in verbs():
        assert verb.examples, f"redrive {name} shows no example"
        assert set(verb.examples) <= shown


# ---- what pages name ----------------------------------------------------------------------------


@every_page()
def test_links_lead_to_what_is_there(page: Path) -> None:
    for path, heading in links(page):
        assert path.exists(), f"{page.name} points to {path}"
        if heading:
            assert heading in headings(path), f"{page.name} points to #{heading} in {path.name}"


@every_page()
def test_commands_and_options_exist(page: Path) -> None:
    known = dict(verbs())
    options = {
        name for verb in known.values() for option in verb.params for name in option.opts
    } | {"--version", "--help", "--no-stop"}
    nouns = {name.split()[0] for name in known}
    for words in code(page):
        if found := re.match(r"redrive (?:--\w+ )*([a-z][a-z-]+)", words):
            assert found[1] in nouns, f"{page.name}: `{words}`"
        if words.startswith(("redrive ", "--")):
            for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", words):
                assert option in options, f"{page.name}: `{words}`"


@every_page()
def test_tables_of_the_config_exist(page: Path) -> None:
    headers = {place.header.strip("[]"): place.section for place in places()}
    headers = {name.split(".")[0]: section for name, section in headers.items()} | headers
    for words in code(page):
        if found := re.fullmatch(r"\[{1,2}([a-z][\w.]*)\]{1,2}(?: (\w+))?", words):
            assert found[1] in headers, f"{page.name}: `{words}`"
            if found[2]:
                keys = {field.encode_name for field in fields(headers[found[1]])}
                assert found[2] in keys, f"{page.name}: `{words}`"


@every_page()
def test_pieces_of_config_have_only_keys_that_exist(page: Path, tmp_path: Path) -> None:
    for block in blocks(page):
        if block.language != "toml":
            continue
        path = tmp_path / "config.toml"
        path.write_text(block.text)
        try:
            load(path)
        except ConfigRejected as rejected:
            unknown = [problem for problem in rejected.problems if "unknown key" in problem.text]
            assert not unknown, f"{page.name}: {unknown}"


def test_every_name_that_expressions_may_speak_of_is_documented() -> None:
    assert {*OF_A_FAILURE} <= {*code(CONCEPTS)}
    elsewhere = {*OF_A_JOB, *OF_A_KEY, *OF_A_RUN, *OF_A_SLOT, *OF_A_HOOK}
    assert elsewhere | set(Sandbox().filters) <= {*code(DOCS / "handlers.md")}


def test_every_type_of_event_is_documented_and_no_other() -> None:
    table = CONCEPTS.read_text().partition("\n## Events\n")[2]
    told = {word for row in re.findall(r"^\| (`.+?) \|", table, re.MULTILINE) for word in
            re.findall(r"`(\w+)`", row)}  # fmt: skip
    of_redrives = {word for word in told if word.startswith(REDRIVE_PREFIX)}
    assert told - of_redrives == set(EVENT_TYPES)
    assert of_redrives == written_in_the_code(rf'"({REDRIVE_PREFIX}\w+)"')


def written_in_the_code(pattern: str) -> set[str]:
    """The events of redrives, which no table lists."""
    sources = [
        ROOT / "daemon/redrived/engine/redrives.py",
        ROOT / "daemon/redrived/store/redrives.py",
        ROOT / "daemon/redrived/store/undo.py",
    ]
    found = {word for path in sources for word in re.findall(pattern, path.read_text())}
    return found - {"redrive_jobs"}  # a table


# ---- pages written from the code ----------------------------------------------------------------


@pytest.mark.parametrize("name", WRITTEN)
def test_a_page_that_comes_from_the_code_is_up_to_date(name: str) -> None:
    """If not: `make docs`."""
    assert (DOCS / name).read_text() == WRITTEN[name]()


def test_every_key_of_the_config_has_a_word_about_it() -> None:
    for place in places():
        for field in fields(place.section):
            said = comments().get((place.section, field.name), "")
            assert said or "table" in row_of(place.header, field.encode_name)
            for word in getattr(field.type, "values", ()):
                assert word in said, f"{place.header} {field.encode_name}: {word} is not explained"


def row_of(header: str, key: str) -> str:
    section = (DOCS / "configuration.md").read_text().partition(f"## `{header}`\n")[2]
    return next(row for row in section.splitlines() if row.startswith(f"| `{key}` |"))


def test_the_page_on_handlers_names_all_that_redrive_offers() -> None:
    text = (DOCS / "handlers.md").read_text()
    for name in set(redrive.__all__) - {"__version__"}:
        assert name in text, name


def test_the_readme_links_every_page() -> None:
    linked = {path for path, _ in links(README)}
    missing = [page.name for page in PAGES if page.parent == DOCS and page not in linked]
    assert missing == []
