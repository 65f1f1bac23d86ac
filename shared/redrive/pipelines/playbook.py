"""A playbook: a pipeline in a text of its own, YAML or TOML, with the tasks it brings along.

    name: report                      # without it, the file's
    workflow:
      - step: fetch
        type: http                    # or python, shell
        url: "https://example.org/{{ args.day }}"
        retry: { max_attempts: 3, retry_when: "{{ status_code >= 500 }}" }
      - step: store
        task: store                   # a task of the config

A step takes the keys of a step in the config, and with `type` those of a task as well. What
is wrong is told as for the config: every problem with its line.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path, PurePath
from typing import Any, Literal, NamedTuple, cast

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from redrive.config.flow_checks import check_steps
from redrive.config.lines import Key, Lines
from redrive.config.problems import ConfigRejected, Enough, Places, Problem, Problems, instead
from redrive.config.reader import Reader
from redrive.config.sections import Config, HttpCall, Name, Pipeline, Shows, Step, Task
from redrive.config.task_checks import check_task
from redrive.config.values import parse_name
from redrive.pipelines.definition import Definition, define
from redrive.pipelines.yaml_text import YamlProblem, YamlText

Kind = Literal["http", "python", "shell"]


class Playbook(NamedTuple):
    name: str
    pipeline: Pipeline
    tasks: dict[str, Task]  # by step

    def define(self, config: Config) -> Definition:
        return define(self.name, self.pipeline, config, self.tasks)


class _Text(Struct, frozen=True, kw_only=True):
    """What stands in a playbook."""

    name: Name | None = None
    description: str | None = None
    workflow: list[dict[str, Any]] = []
    shows: Shows | None = None
    mode: str | None = None


class _Step(Step, frozen=True, kw_only=True):
    """A step as playbooks write it."""

    name: Name = field(name="step")
    task: Name | None = None  # type: ignore[assignment]
    type: Kind | None = None


class _Mistakes(Problems):
    """Names every place as a playbook writes it, whoever finds the mistake."""

    def add(self, key: Key, text: str) -> None:
        is_unknown = key[-1:] == ("http",)  # which no playbook has; somebody wrote it all the same
        super().add(key if is_unknown else _written(key), text)

    def inside(self, key: Key) -> bool:
        return super().inside(_written(key))


def _written(key: Key) -> Key:
    match key:
        case "workflow", int(place), "http", *inside:
            return ("workflow", place, *inside)
        case "workflow", int(place), "name":
            return ("workflow", place, "step")
        case _:
            return key


def _keys(kind: type[Struct], *without: str) -> frozenset[str]:
    return frozenset(kind.__struct_encode_fields__) - {*without}


_STEP_KEYS = _keys(_Step)
_CALL_KEYS = _keys(HttpCall)
_TASK_KEYS = _keys(Task, "python", "command", "http") - _STEP_KEYS
_KEYS_OF: Mapping[Kind | None, frozenset[str]] = {
    None: _STEP_KEYS,
    "http": _STEP_KEYS | _TASK_KEYS | _CALL_KEYS,
    "python": _STEP_KEYS | _TASK_KEYS | {"python"},
    "shell": _STEP_KEYS | _TASK_KEYS | {"command"},
}


def read_playbook(
    source: str, config: Config, name: str | None = None, file: str | None = None
) -> Playbook:
    """The playbook in `source`; `ConfigRejected` names everything that is wrong with it.

    `name` comes before the one in the text, and that before the name of the `file` it was in.
    """
    label = file or name or "playbook"
    values, places = _parse(source, label)
    problems = _Mistakes(label, places)
    reader = Reader(Path(config.folder), {}, problems)
    try:
        playbook = _read(values, name, file, reader, config, problems)
    except Enough:
        playbook = None  # what was found is told below
    if found := problems.in_file_order():
        raise ConfigRejected(found)
    assert playbook is not None
    return playbook


def _parse(source: str, label: str) -> tuple[Any, Places]:
    try:
        return tomllib.loads(source), Lines(source)
    except (ValueError, RecursionError) as broken:
        if _is_toml(source):
            raise ConfigRejected([Problem(label, None, "", f"not TOML: {broken}")]) from None
    try:
        text = YamlText(source)
    except YamlProblem as problem:
        raise ConfigRejected([Problem(label, problem.line, "", str(problem))]) from None
    return text.values, text


def _is_toml(source: str) -> bool:
    """Whether a broken text was meant as TOML, judged by its first line that says anything."""
    lines = (line.strip() for line in source.splitlines())
    first = next((line for line in lines if line and not line.startswith("#")), "")
    return first.startswith("[") or "=" in first.partition(":")[0]


def _read(
    values: Any,
    name: str | None,
    file: str | None,
    reader: Reader,
    config: Config,
    problems: Problems,
) -> Playbook:
    text = reader.section(_Text, values)
    called = name or text.name or _name_of(file)
    if called is None:
        problems.doubt((), '"name" is missing, expected the name of the pipeline')
    elif called in config.pipelines:
        problems.add(("name",), f"[pipelines.{called}] is in the config, expected another name")
    steps: list[Step] = []
    tasks: dict[str, Task] = {}
    for place, item in enumerate(text.workflow):
        step, task = _step(item, ("workflow", place), reader, config, problems)
        if task is not None:
            tasks[step.name] = task
            # Without the version: its jobs' limits are shared by all of them.
            step = replace(step, task=f"{called}.{step.name}")
        steps.append(step)
    ours = [replace(each, task=None) if each.name in tasks else each for each in steps]
    check_steps(ours, ("workflow",), config, problems)
    return Playbook(called or "", Pipeline(steps=steps, shows=text.shows, mode=text.mode), tasks)


def _name_of(file: str | None) -> str | None:
    """What the playbook in a file is called, unless it says so itself."""
    try:
        return None if file is None else parse_name(PurePath(file).stem)
    except ValueError:
        return None


def _step(
    item: dict[str, Any], key: Key, reader: Reader, config: Config, problems: Problems
) -> tuple[Step, Task | None]:
    # A key without a value is a key left out.
    item = {name: value for name, value in item.items() if value is not None}
    kind = item.get("type") if item.get("type") in _KEYS_OF else None
    known = _KEYS_OF[cast("Kind | None", kind)]
    for name in sorted(item.keys() - known):
        problems.add((*key, name), f"unknown key, {instead(name, sorted(known))}")
    read = reader.section(_Step, _only(item, _STEP_KEYS), key)
    if (read.type is None) == (read.task is None) and not problems.inside(key):
        got = "none" if read.type is None else "both"
        problems.add(key, f"got {got}, expected exactly one of task, type")
    task = None if kind is None else _task(item, kind, key, reader, config, problems)
    fields = asdict(read)
    del fields["type"]
    return Step(**fields), task


def _task(
    item: dict[str, Any], kind: str, key: Key, reader: Reader, config: Config, problems: Problems
) -> Task:
    keys = _TASK_KEYS if kind == "http" else _TASK_KEYS | {"python", "command"}
    task = reader.section(Task, _only(item, keys), key)
    if kind == "http":
        call = reader.section(HttpCall, _only(item, _CALL_KEYS), key)
        task = replace(task, http=call)
    check_task(task, key, config, problems)
    return task


def _only(item: dict[str, Any], keys: frozenset[str]) -> dict[str, Any]:
    return {name: value for name, value in item.items() if name in keys}
