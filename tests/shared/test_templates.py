"""Templates: text around them makes text, alone they give the value itself."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from redrive.errors import UsageProblem
from redrive.templates import TemplateFailed, compile_template, render

FACTS: dict[str, Any] = {
    "args": {"path": "a/b", "items": [1, 2], "n": 2, "nothing": None},
    "steps": {"parse": {"result": {"pages": 3}}},
}


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{ args.items }}", [1, 2]),
        ("{{ steps.parse.result.pages }}", 3),
        ("{{ args }}", FACTS["args"]),
        ("{{ args.n > 1 }}", True),
        ("{{ args.nothing }}", None),
        ("{{ args.items | map('string') }}", ["1", "2"]),
        ("pages: {{ steps.parse.result.pages }}", "pages: 3"),
        ("{{ args.n }}{{ args.n }}", "22"),
        (" {{ args.n }}", " 2"),
        ("{{ args.path ~ '.' ~ args.n }}", "a/b.2"),
        ("{{ args | tojson }}", '{"path": "a/b", "items": [1, 2], "n": 2, "nothing": null}'),
        ("{% if args.n > 1 %}many{% else %}one{% endif %}", "many"),
        ("{# a remark #}text", "text"),
        ("no template, 100 % text\n", "no template, 100 % text\n"),
        ("{{ missing | default('x') }}", "x"),
        (
            {"a": ["{{ args.n }}", 7, None], "b": {"c": "{{ args.path }}"}},
            {"a": [2, 7, None], "b": {"c": "a/b"}},
        ),
    ],
)
def test_a_template_gives_its_value_or_its_text(template: Any, expected: Any) -> None:
    assert render(template, FACTS) == expected


@pytest.mark.parametrize(
    "template", ["{{ missing }}", "{{ [missing] }}", "a {{ missing }}", "{{ args.missing }}"]
)
def test_what_is_not_defined_is_an_error_and_never_an_empty_text(template: str) -> None:
    with pytest.raises(TemplateFailed, match=r"'?missing'?.*; write `\| default"):
        render(template, FACTS)


@pytest.mark.parametrize(
    ("template", "reason"),
    [
        ("{{ args.", "expected name or number"),
        ("{{ args | shout }}", "No filter named 'shout'"),
        ("{% for x in args %}{{ x }}{% endfor %}", "For is not allowed"),
        ("{% set x = 1 %}", "Assign is not allowed"),
        ("{% include 'x' %}", "Include is not allowed"),
        ("{% macro m() %}{% endmacro %}", "Macro is not allowed"),
    ],
)
def test_what_is_more_than_an_expression_is_refused_when_it_is_read(
    template: str, reason: str
) -> None:
    with pytest.raises(UsageProblem, match=reason):
        compile_template(template)


def test_a_template_has_a_length_limit() -> None:
    with pytest.raises(UsageProblem, match="is 16385 characters long"):
        compile_template("x" * 16385)


def test_a_template_that_would_make_too_much_is_stopped() -> None:
    with pytest.raises(TemplateFailed, match="more than 524288 characters"):
        render("{{ path }} " * 100, {"path": "x" * 10_000})


@pytest.mark.parametrize("key", ["none", "true", "(1, 2)"])
def test_a_table_whose_keys_are_no_texts_is_no_value_of_a_template(key: str) -> None:
    with pytest.raises(TemplateFailed, match="Only dicts with str-like"):
        render(f"{{{{ {{{key}: 1}} }}}}", FACTS)


TEXT = st.text(max_size=20).filter(lambda text: "{" not in text)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXT,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=20,
)


@settings(deadline=None)
@given(value=JSON)
def test_a_lone_template_hands_on_exactly_what_it_names(value: Any) -> None:
    assert render("{{ args }}", {"args": value}) == value


@settings(deadline=None)
@given(value=JSON)
def test_what_holds_no_template_stays_as_it_is(value: Any) -> None:
    assert render(value, FACTS) == value


@settings(deadline=None)
@given(text=st.text(alphabet="{}%# args.n|'\"\n[]", max_size=40))
def test_any_text_is_refused_or_rendered(text: str) -> None:
    with suppress(UsageProblem, TemplateFailed):
        render(text, FACTS)
