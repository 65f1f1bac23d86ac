"""Conditions: what they answer, what they refuse, and what they can never cost."""

from __future__ import annotations

import subprocess
import sys
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.conditions import Condition, ConditionFailed, compile_condition
from redrive.errors import UsageProblem

FACTS: dict[str, Any] = {
    "error": "quota exceeded",
    "status_code": 503,
    "exit_code": None,
    "result": {"rows": [1, 2], "update": 7},
    "data": None,
    "attempt": 2,
    "max_attempts": 3,
    "args": {"items": [1], "path": "a/b"},
}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("status_code >= 500", True),
        ("status_code == 404", False),
        ("{{ status_code >= 500 }}", True),
        ("  {{status_code == 404}}\n", False),
        ("'quota' in error", True),
        ("error.upper().startswith('QUOTA')", True),
        ("attempt < max_attempts and status_code in [502, 503]", True),
        ("result.rows | length == 2", True),
        ("result.rows | select('gt', 1) | list == [2]", True),
        ("result.rows | select('gt', 5)", False),
        ("exit_code is none", True),
        ("nothing is defined", False),
        ("nothing | default(1) == 1", True),
        ("args.items == [1]", True),
        ("error ~ '!' == 'quota exceeded!'", True),
        ("attempt * 2 % 3 == 1", True),
        ("data", False),
        ("attempt", True),
    ],
)
def test_a_condition_is_true_or_false_of_the_facts(text: str, expected: bool) -> None:
    assert Condition(text).holds(FACTS) is expected


@pytest.mark.parametrize("word", ["true", "True", " YES ", "1", "yes"])
def test_a_text_that_says_yes_is_true(word: str) -> None:
    assert Condition("data").holds({"data": word})


@pytest.mark.parametrize("word", ["false", "no", "0", "", "anything else"])
def test_any_other_text_is_false(word: str) -> None:
    assert not Condition("data").holds({"data": word})


@pytest.mark.parametrize(
    "text",
    [
        "nothing == 1",
        "[nothing]",
        "error.nothing",
        "exit_code > 3",
        "result.rows[9]",
        "1 / 0",
        "error()",
    ],
)
def test_a_condition_that_cannot_be_answered_says_so(text: str) -> None:
    with pytest.raises(ConditionFailed, match=r"the condition .* failed: .+; test with"):
        Condition(text).holds(FACTS)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", r"unexpected 'end of template' \(character 1\)"),
        ("status_code >=", r"unexpected 'end of template' \(character 15\)"),
        ("status_code >= 500 retry", r"unexpected 'retry' \(character 20\)"),
        ("a.b.", r"expected name or number \(character 5\)"),
        ("error $", r"unexpected char '\$' at 6"),
        ("error | shout", "No filter named 'shout'"),
        ("error is loud", "No test named 'loud'"),
        ("2 ** 9", "Pow is not allowed"),
        ("(" * 200 + "1" + ")" * 200, "too long or nested too deeply"),
        ("{{ a }} and {{ b }}", "unexpected 'end of print statement'"),
        ("{% if a %}", "unexpected '%'"),
    ],
)
def test_a_condition_that_does_not_compile_is_refused_with_the_place(
    text: str, reason: str
) -> None:
    with pytest.raises(UsageProblem, match=reason):
        Condition(text)


def test_a_condition_has_a_length_limit() -> None:
    with pytest.raises(UsageProblem, match="is 513 characters long"):
        Condition("1".ljust(513))


@pytest.mark.parametrize(
    "text",
    [
        "'a' * 10**9",
        "'a' * 1000000000",
        "[0] * 1000000000",
        "'%1000000000d' % 1",
        "'{:1000000000}'.format(1)",
        "'{x:1000000000}'.format_map({'x': 1})",
        "'a'.center(1000000000)",
        "'a' | center(1000000000)",
        "'%1000000000d' | format(1)",
        "'a' | indent(1000000000)",
        "[1] | tojson(indent=1000000000)",
        "range(1000000000) | list",
        "lipsum(n=100000)",
        "12345 | round(-1000000000)",
        "error.replace('', error)",
        "','.join(error)",
        "error.zfill(1000000000)",
    ],
)
def test_an_expression_that_could_fill_the_memory_is_no_condition(text: str) -> None:
    with pytest.raises((UsageProblem, ConditionFailed)):
        Condition(text).holds(FACTS)


@pytest.mark.parametrize(
    "text",
    [
        "error | map('replace', '', error) | list",
        "error | map('join', error) | list",
        "error" + " | tojson" * 40,
        "error" + " | map('list') | map('string')" * 12 + " | list",
        "error" + " + error" * 60,
        "[" * 12 + "error" + "] ~ ''" * 12,
    ],
)
def test_growing_step_by_step_is_stopped_by_the_budget(text: str) -> None:
    with pytest.raises(ConditionFailed, match="more than 524288 characters or items"):
        Condition(text).holds({"error": "\\'" * 32_000})


@pytest.mark.parametrize(
    "text",
    [
        "error.__class__.__mro__",
        "''['__class__']",
        "error | attr('__class__')",
        "result.update({'a': 1})",
        "args.items.append(2)",
        "self.__init__",
        "cycler.__init__.__globals__",
        "error.encode",
        "namespace(a=1)",
    ],
)
def test_an_expression_reaches_neither_into_python_nor_into_the_facts(text: str) -> None:
    facts = {**FACTS, "result": {"rows": []}, "args": {"items": [1]}}

    with pytest.raises((UsageProblem, ConditionFailed)):
        Condition(text).holds(facts)
    assert facts["args"] == {"items": [1]}


def test_a_condition_knows_which_facts_it_asks_about() -> None:
    condition = Condition("status_code >= 500 and result.rows | length > attempt")

    assert condition.names == {"status_code", "result", "attempt"}


def test_the_same_text_is_compiled_once() -> None:
    assert compile_condition("attempt > 1") is compile_condition("attempt > 1")


def test_reading_conditions_in_costs_no_template_engine() -> None:
    program = "import sys, redrive.conditions, redrive.templates; sys.exit('jinja2' in sys.modules)"

    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


WORDS = [
    "error",
    "status_code",
    "exit_code",
    "result",
    "args",
    "nothing",
    "self",
    "range",
    "'a'",
    '"\\\\"',
    "0",
    "7",
    "999999999999",
    "1e308",
    "none",
    "true",
    "(",
    ")",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    ".",
    "|",
    "~",
    "+",
    "-",
    "*",
    "**",
    "/",
    "//",
    "%",
    "==",
    "<",
    ">=",
    "and",
    "or",
    "not",
    "in",
    "is",
    "if",
    "else",
    "defined",
    "list",
    "string",
    "map('list')",
    "map('string')",
    "join",
    "join(error)",
    "replace('',error)",
    "tojson",
    "upper()",
    "format(1)",
    "items",
    "split()",
    "{{",
    "}}",
    "__class__",
    "sort",
    "unique",
    "default(1)",
    "select('gt',0)",
    "int",
    "[:9]",
    "[::-1]",
]
# Each compiles after any other, so that long chains of them run: what the budget is for.
STEPS = [
    "|list",
    "|string",
    "|map('list')",
    "|map('string')",
    "|tojson",
    "|join(error)",
    "|replace('',error)",
    "|upper",
    "+error",
    "~error",
    "|sort",
    "|urlencode",
]
EXPRESSIONS = st.one_of(
    st.text(max_size=60),
    st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join),
    st.lists(st.sampled_from(STEPS), max_size=30).map(lambda steps: "error" + "".join(steps)),
)


@settings(deadline=None, max_examples=300)
@given(text=EXPRESSIONS, error=st.text(alphabet="a\\'\" é", max_size=200))
def test_whatever_is_written_is_refused_or_answered_within_bounds(text: str, error: str) -> None:
    tracemalloc.start()
    try:
        answer = Condition(text).holds({**FACTS, "error": error * 40})
        assert isinstance(answer, bool)
    except (UsageProblem, ConditionFailed):
        pass
    finally:
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 64 * 1024 * 1024
