"""TOML for properties: values that a file can hold, and the text that holds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import date, time

from hypothesis import strategies as st

from redrive.config.lines import Key
from redrive.config.values import Toml

# TOML forbids this one inside quotes, and JSON does not escape it.
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x7f"), max_size=8)

others: st.SearchStrategy[Toml] = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False),
    st.datetimes(),
    st.dates(),
    st.times(),
)


def values(
    names: st.SearchStrategy[str] = texts, strings: st.SearchStrategy[str] = texts
) -> st.SearchStrategy[Toml]:
    return st.recursive(
        strings | others,
        lambda inner: st.one_of(
            st.lists(inner, max_size=3), st.dictionaries(names, inner, max_size=4)
        ),
        max_leaves=15,
    )


def tables(
    names: st.SearchStrategy[str] = texts, strings: st.SearchStrategy[str] = texts
) -> st.SearchStrategy[dict[str, Toml]]:
    return st.dictionaries(names, values(names, strings), max_size=5)


def written(value: Toml) -> str:
    """`value` as TOML, on one line."""
    match value:
        case list():
            return f"[{', '.join(map(written, value))}]"
        case dict():
            pairs = (f"{written(name)} = {written(item)}" for name, item in value.items())
            return f"{{ {', '.join(pairs)} }}"
        case date() | time():
            return value.isoformat()
        case float():
            return repr(value)
        case _:
            return json.dumps(value, ensure_ascii=False)


def document(table: dict[str, Toml]) -> str:
    """A file with one line for each key of `table`."""
    return "".join(f"{written(name)} = {written(item)}\n" for name, item in table.items())


def keys(value: Toml, key: Key) -> Iterator[Key]:
    """`key` and every key inside its value."""
    yield key
    match value:
        case list():
            for place, item in enumerate(value):
                yield from keys(item, (*key, place))
        case dict():
            for name, item in value.items():
                yield from keys(item, (*key, name))
        case _:
            pass
