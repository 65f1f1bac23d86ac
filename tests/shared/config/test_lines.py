"""The walk over the text finds the keys that tomllib finds, each on its line."""

from __future__ import annotations

import tomllib

from hypothesis import given

from redrive.config.lines import Key, Lines
from redrive.config.values import Toml
from support.toml_strategies import document, keys, tables

TEXT = '''\
title = "a = 1"          # [not] a table
"quoted \\u0061.b" = 1
'literal "key"' = { x = 1, "y.z" = [1, { w = """
]""" }] }

[daemon]
a.b . "c" = """
[no.table]
key = \\"""1\\"""
""""
d = \'\'\'
\'\'\'\'
when = 1979-05-27 07:32:00
list = [
    "one",   # ]
    [2, 3],
    { four = 4 },
]

[[hooks]]
on = 1
[hooks.http]
url = ""
[[hooks]]
on = 2
[[hooks.inner]]
x = 1
'''


def test_every_key_has_its_line() -> None:
    lines = Lines(TEXT)
    expected: dict[Key, int] = {
        ("title",): 1,
        ("quoted a.b",): 2,
        ('literal "key"',): 3,
        ('literal "key"', "y.z", 1, "w"): 3,
        ("daemon",): 6,
        ("daemon", "a"): 7,
        ("daemon", "a", "b", "c"): 7,
        ("daemon", "d"): 11,
        ("daemon", "when"): 13,
        ("daemon", "list", 0): 15,
        ("daemon", "list", 1): 16,
        ("daemon", "list", 1, 1): 16,
        ("daemon", "list", 2, "four"): 17,
        ("hooks", 0): 20,
        ("hooks", 0, "on"): 21,
        ("hooks", 0, "http", "url"): 23,
        ("hooks", 1, "on"): 25,
        ("hooks", 1, "inner", 0, "x"): 27,
    }
    assert {key: lines[key] for key in expected} == expected
    assert not lines.twice


def test_a_key_that_was_not_written_has_the_line_of_the_table_around_it() -> None:
    lines = Lines("\n[a]\n\n[a.b]\nc = 1")
    assert (lines["a", "b", "d"], lines["a", "z"], lines["y",]) == (4, 2, 1)


def test_windows_and_broken_text_do_not_disturb_the_walk() -> None:
    assert Lines("a = 1\r\n[b]\r\nc = 2\r\n")["b", "c"] == 3
    assert Lines("a = 1\nb = = 2\nc = 3")["b",] == 2


@given(tables())
def test_the_walk_finds_whatever_tomllib_reads(table: dict[str, Toml]) -> None:
    text = document(table)
    assert tomllib.loads(text) == table
    lines = Lines(text)
    for line, name in enumerate(table, start=1):
        for key in keys(table[name], (name,)):
            assert lines[key] == line
    assert not lines.twice
