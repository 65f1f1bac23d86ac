"""Whatever stands in the file, it is loaded or refused; nothing else ever comes out."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from msgspec.structs import fields

from redrive.config import ConfigRejected, load, load_client, sections, show
from redrive.config.values import Toml
from support.toml_strategies import document, tables, texts

SECTIONS = [
    each
    for each in vars(sections).values()
    if isinstance(each, type) and issubclass(each, sections.Section)
]
KEYS = sorted({field.encode_name for section in SECTIONS for field in fields(section)})
PLAUSIBLE = ["default", "a", "1s", "* * * * *", "http://x", "m:f", "{{ args.a }}", "dead", "${A}"]

# Real keys and plausible names, so that the reader gets beyond the first table.
names = st.sampled_from([*KEYS, "default", "a", "manual"])
strings = st.sampled_from(PLAUSIBLE) | texts


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("config") / "config.toml"


def load_or_refuse(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    for load_some in (load, load_client):
        try:
            show(load_some(path, {"A": "b"}))
        except ConfigRejected:
            pass  # with what words, test_mistakes says


@given(content=st.binary())
@example(content=b"\xef\xbb\xbf[daemon]")
@example(content=b"a.b = 1\n[a]\n[a.b]")
@example(content=b"[[tasks.t]]\n[tasks.t.x]\n[[tasks]]")
@example(content=b"a = 0x" + b"f" * 5000)
def test_any_bytes_are_loaded_or_refused(path: Path, content: bytes) -> None:
    load_or_refuse(path, content)


@given(text=st.text(st.sampled_from("ab[]{}=.,'\"\\#\n ${}:-1")))
def test_any_text_of_what_toml_is_made_of_is_loaded_or_refused(path: Path, text: str) -> None:
    load_or_refuse(path, text.encode())


@given(table=tables(names, strings))
def test_any_values_in_any_tables_are_loaded_or_refused(path: Path, table: dict[str, Toml]) -> None:
    load_or_refuse(path, document(table).encode())
