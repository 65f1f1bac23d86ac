"""Playbooks: what they may say, and where their mistakes are."""

from __future__ import annotations

import pytest

from redrive.config import ConfigRejected
from redrive.config.flow_checks import MOST_STEPS
from redrive.config.sections import Config, Pipeline, Step, Task
from redrive.pipelines import Playbook, draw, encode, read_playbook

CONFIG = Config(
    tasks={"store": Task(command=["true"])},
    pipelines={"taken": Pipeline(steps=[Step(name="a", task="store")])},
)

YAML = """
name: report
workflow:
  - step: fetch
    type: http
    method: POST
    url: "http://localhost/{{ args.day }}"
    expect: [200, 201]
    retry: { max_attempts: 3, retry_when: "{{ status_code >= 500 }}" }
  - step: count
    type: python
    python: "app.tasks:count"
    timeout: 5m
    retry: true
  - step: pack
    type: shell
    command: "tar c . | gzip"
    needs: [fetch]
    retry: 5
  - step: store
    task: store
    needs: [count, pack]
    retry: false
"""

TOML = """
name = "report"
[[workflow]]
step = "fetch"
type = "http"
method = "POST"
url = "http://localhost/{{ args.day }}"
expect = [200, 201]
retry = { max_attempts = 3, retry_when = "{{ status_code >= 500 }}" }
[[workflow]]
step = "count"
type = "python"
python = "app.tasks:count"
timeout = "5m"
retry = true
[[workflow]]
step = "pack"
type = "shell"
command = "tar c . | gzip"
needs = ["fetch"]
retry = 5
[[workflow]]
step = "store"
task = "store"
needs = ["count", "pack"]
retry = false
"""


def read(source: str) -> Playbook:
    return read_playbook(source, CONFIG)


def test_a_playbook_brings_the_tasks_of_its_steps() -> None:
    playbook = read(YAML)
    assert playbook.name == "report"
    assert set(playbook.tasks) == {"fetch", "count", "pack"}
    http = playbook.tasks["fetch"].http
    assert http is not None
    assert (http.method, http.expect) == ("POST", [200, 201])
    assert playbook.tasks["count"].timeout == 300


def test_its_retries_are_written_in_any_form() -> None:
    steps = read(YAML).define(CONFIG).steps
    assert [step.lane.policy.max_attempts for step in steps] == [3, 3, 5, 1]
    assert steps[0].lane.policy.retry_when == "{{ status_code >= 500 }}"


def test_toml_says_the_same() -> None:
    assert encode(read(TOML).define(CONFIG)) == encode(read(YAML).define(CONFIG))


def test_a_name_given_with_it_comes_first() -> None:
    assert read_playbook(YAML, CONFIG, "other").name == "other"


def test_a_playbook_without_a_name_bears_that_of_its_file() -> None:
    nameless = YAML.replace("name: report\n", "")
    assert read_playbook(nameless, CONFIG, file="plays/nightly.yaml").name == "nightly"
    assert read_playbook(nameless, CONFIG, "other", "nightly.yaml").name == "other"
    assert read_playbook(YAML, CONFIG, file="nightly.yaml").name == "report"
    with pytest.raises(ConfigRejected, match='"name" is missing'):
        read_playbook(nameless, CONFIG, file="my nightly.yaml")


def test_its_mistakes_are_told_with_the_name_of_its_file() -> None:
    with pytest.raises(ConfigRejected, match=r"^plays/bad\.yaml:2: "):
        read_playbook("name: x\nworkflow: 5", CONFIG, file="plays/bad.yaml")
    with pytest.raises(ConfigRejected, match=r"^plays/bad\.yaml:1: not YAML: "):
        read_playbook("name: x: y", CONFIG, file="plays/bad.yaml")


MISTAKES = [
    ("workflow:\n  - step: a\n    task: store\n", '1: "name" is missing, expected the name'),
    ("name: x\n", "1: got no step, expected at least one"),
    ("name: x\nworkflow: []\n", "1: got no step, expected at least one"),
    ("name: taken\nworkflow:\n- step: a\n  task: store", "1: name: [pipelines.taken] is in the"),
    ("name: x\nworkflow:\n- step: a\n  task: stor", '4: workflow[0].task: unknown task "stor"'),
    ("name: x\nworkflow:\n- task: store", '3: workflow[0]: "step" is missing'),
    ("name: x\nworkflow:\n- step: a", "3: workflow[0]: got none, expected exactly one of task,"),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  type: shell\n  command: ls",
        "3: workflow[0]: got both, expected exactly one of task, type",
    ),
    ("name: x\nworkflow:\n- step: a\n  type: sql", '4: workflow[0].type: got "sql", expected one'),
    (
        "name: x\nworkflow:\n- step: a\n  type: shell\n  comand: ls",
        '5: workflow[0].comand: unknown key, did you mean "command"?',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  type: http\n  http: { url: 'http://x/' }",
        "5: workflow[0].http: unknown key",
    ),
    (
        "name: x\nworkflow:\n- step: a\n  type: python\n  python: nope",
        '5: workflow[0].python: got "nope", expected "package.module:function"',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  type: http\n  url: ftp://x",
        '5: workflow[0].url: got "ftp://x", expected an http:// or https:// address',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  when: '1 +'",
        "5: workflow[0].when: `1 +` does not compile",
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n- step: a\n  task: store",
        '5: workflow[1].step: "a" is the name of workflow[0], expected another',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  needs: [b]",
        '5: workflow[0].needs[0]: unknown step "b"',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  needs: [b]\n- step: b\n  task: store",
        "the steps wait for each other, a -> b -> a, expected no circle",
    ),
    (
        "name: x\nworkflow:\n- step: a\n  type: http\n  url: 'http://x/{{ args.day'",
        "5: workflow[0].url: `http://x/{{ args.day` does not compile",
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  when: stepss.a.result",
        '5: workflow[0].when: unknown name "stepss", expected one of "args", ',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  args:\n    b: ['{{ steps.nope.result }}']",
        '6: workflow[0].args.b[0]: unknown step "nope", expected "a"',
    ),
    (
        "name: x\nworkflow:\n- step: a\n  task: store\n  args: { b: 'of {{ steps[\"nope\"] }}' }",
        '5: workflow[0].args.b: unknown step "nope", expected "a"',
    ),
    (
        (
            "name: x\nworkflow:\n- step: a\n  task: store\n  args: { b: '{{ steps.c }}' }\n"
            "- step: c\n  type: shell\n  command: ls"
        ),
        '5: workflow[0].args.b: step "c" need not be over by then, expected none',
    ),
    ("name: x\nworkflow: *a", "2: `*a` is an alias, expected the value itself"),
    ("name: x\nname: y\nworkflow: []", "2: 'name' is written again, expected it only once"),
    ("name: [x\nworkflow", "not YAML:"),
    ('name = "x"\nworkflow', "not TOML:"),
    ("", '1: "name" is missing'),
    ("- a", "1: got a list, expected a table"),
    ("? [a]\n: 1", "1: a key is a list or a table, expected a text"),
    ("[" * 5_000, "not TOML"),
    ("- " * 5_000, "too deeply"),
    ("a: " + "[" * 3_000, "too deeply"),
]


@pytest.mark.parametrize(("source", "told"), MISTAKES)
def test_a_mistake_is_told_with_its_line(source: str, told: str) -> None:
    with pytest.raises(ConfigRejected) as rejected:
        read(source)
    assert told in str(rejected.value)
    assert str(rejected.value).startswith("playbook:")


def test_a_pipeline_has_no_more_steps_than_can_be_drawn() -> None:
    def with_steps(n: int) -> str:
        return "name: x\nworkflow:\n" + "".join(
            f"- {{step: s{i}, task: store}}\n" for i in range(n)
        )

    definition = read(with_steps(MOST_STEPS)).define(CONFIG)
    assert len(draw(definition).splitlines()) == MOST_STEPS
    with pytest.raises(ConfigRejected, match="workflow: got 1,001 steps, expected at most 1,000"):
        read(with_steps(MOST_STEPS + 1))


def test_all_mistakes_are_told_at_once() -> None:
    source = "name: x\nworkflow:\n- step: a\n  task: stor\n- step: b\n  task: store\n  delay: soon"
    with pytest.raises(ConfigRejected) as rejected:
        read(source)
    assert [problem.line for problem in rejected.value.problems] == [4, 7]
