"""What turns data into code, or a string into a shell's words, is used nowhere by accident."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted(
    path for folder in ("shared", "daemon", "tui") for path in (ROOT / folder).rglob("*.py")
)
MODULES = {"pickle", "marshal", "shelve", "dill"}
CALLS = {"eval", "exec", "recv_pyobj", "send_pyobj", "system", "popen"}
UNSAFE_LOADERS = {"load", "load_all", "unsafe_load", "full_load"}


def offences(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        match node:
            case ast.Import(names=names):
                yield from (name.name for name in names if name.name in MODULES)
            case ast.ImportFrom(module=str(module)) if module in MODULES:
                yield module
            case ast.Call(func=ast.Name(id=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(attr=name)) if name in CALLS:
                yield name
            case ast.Call(func=ast.Attribute(value=ast.Name(id="yaml"), attr=name)) if (
                name in UNSAFE_LOADERS
            ):
                yield f"yaml.{name}"
            case ast.keyword(arg="shell", value=ast.Constant(value=True)):
                yield "shell=True"
            case _:
                pass


@pytest.mark.parametrize("path", SOURCES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_source_turns_data_into_code(path: Path) -> None:
    assert list(offences(ast.parse(path.read_text()))) == []


def test_offences_are_found() -> None:
    source = "import pickle\neval(x)\nyaml.load(x)\nrun(x, shell=True)\nsocket.recv_pyobj()"
    expected = ["pickle", "eval", "yaml.load", "recv_pyobj", "shell=True"]
    assert sorted(offences(ast.parse(source))) == sorted(expected)
