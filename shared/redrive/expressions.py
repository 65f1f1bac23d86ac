"""Expressions and texts with expressions in them, compiled once, checked before they run.

What is not on the list of things known to be harmless is refused here, by name and place;
what harmless operations may still cost at run time is counted in `sandbox`.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar, cast

import msgspec
from jinja2 import TemplateError, TemplateSyntaxError, nodes
from jinja2.environment import TemplateExpression
from jinja2.lexer import describe_token, ignored_tokens
from jinja2.parser import Parser
from jinja2.visitor import NodeTransformer

from redrive.errors import UsageProblem
from redrive.sandbox import Sandbox, renew_budget, spend

_SANDBOX = Sandbox()
_ALLOWED = (nodes.Expr, nodes.Helper, nodes.Template, nodes.Output, nodes.If)
# What the parser, the compiler and Python itself raise at text that asks too much of them.
_TOO_MUCH = (RecursionError, MemoryError, SyntaxError, ValueError)

Node = TypeVar("Node", bound=nodes.Node)


class Expression:
    """A compiled expression and the names it speaks of."""

    def __init__(self, tree: nodes.Expr) -> None:
        self.names = _names(tree)
        self.parts = _parts(tree)
        body = [nodes.Assign(nodes.Name("result", "store"), tree, lineno=1)]
        self._value = TemplateExpression(_compiled(nodes.Template(body, lineno=1)), False)

    def value(self, facts: Mapping[str, Any]) -> Any:
        """What the expression makes of `facts`, as plain JSON; it may raise anything."""
        renew_budget()
        # `map` and `select` give iterators: `list` runs them, and raises at what is undefined.
        return msgspec.to_builtins(self._value(facts), str_keys=True, enc_hook=list)


class Text:
    """A compiled text with expressions in it, and the names they speak of."""

    def __init__(self, tree: nodes.Template) -> None:
        self.names = _names(tree)
        self.parts = _parts(tree)
        self._template = _compiled(tree)

    def value(self, facts: Mapping[str, Any]) -> str:
        """The text, its expressions filled in from `facts`; it may raise anything."""
        renew_budget()
        pieces: list[str] = []
        for piece in self._template.root_render_func(self._template.new_context(dict(facts))):
            spend(len(piece))
            pieces.append(piece)
        return "".join(pieces)


def compile_expression(text: str) -> Expression:
    """`text` compiled; UsageProblem, with the place, when it is refused."""
    with _refusing(text):
        return Expression(_harmless(_parse(text)))


def compile_text(text: str) -> Expression | Text:
    """`text` compiled; as an expression when it is exactly one `{{ }}` and nothing else."""
    with _refusing(text):
        tree = _harmless(_SANDBOX.parse(text))
        match tree.body:
            case [nodes.Output(nodes=[only])] if not isinstance(only, nodes.TemplateData):
                return Expression(only)
            case _:
                return Text(tree)


@contextmanager
def _refusing(text: str) -> Generator[None]:
    """Turns whatever the compilation of `text` raises into one UsageProblem."""
    renew_budget()  # what is constant is worked out already now
    try:
        yield
    except TemplateError as refused:
        raise _refusal(text, refused.message or "it is no expression") from refused
    except _TOO_MUCH as refused:
        raise _refusal(text, "it is too long or nested too deeply") from refused


def _refusal(text: str, reason: str) -> UsageProblem:
    start = text if len(text) <= 80 else f"{text[:79]}…"
    return UsageProblem(
        f"`{start}` does not compile: {reason}",
        hint="expressions, `{% if %}` and harmless filters are all that is known here",
    )


def _parse(text: str) -> nodes.Expr:
    tokens = list(_SANDBOX.lexer.tokeniter(text, None, None, "variable"))
    parser = Parser(_SANDBOX, text, state="variable")
    try:
        tree = parser.parse_expression()
        if not parser.stream.eos:
            parser.fail(f"unexpected {describe_token(parser.stream.current)!r}")
    except TemplateSyntaxError as refused:
        # Jinja2 only knows the line; the tokens it has not taken show the place.
        taken = [place for place, token in enumerate(tokens) if token[1] not in ignored_tokens]
        left = sum(1 for _ in parser.stream)
        before = tokens[: taken[-left]] if left else tokens
        place = 1 + sum(len(token[2]) for token in before)
        raise TemplateSyntaxError(f"{refused.message} (character {place})", 1) from refused
    return tree


def _harmless(tree: Node) -> Node:
    """`tree`, if there is nothing in it that we do not know; `~` as a `join`, which counts."""
    for node in _all(tree):
        if isinstance(node, nodes.Pow) or not isinstance(node, _ALLOWED):
            raise TemplateSyntaxError(f"{type(node).__name__} is not allowed", node.lineno)
    return cast(Node, _Joins().visit(tree))


class _Joins(NodeTransformer):
    def visit_Concat(self, node: nodes.Concat) -> nodes.Filter:
        self.generic_visit(node)
        return nodes.Filter(nodes.List(node.nodes), "join", [], [], None, None)


def _names(tree: nodes.Node) -> frozenset[str]:
    return frozenset(node.name for node in _all(tree) if isinstance(node, nodes.Name))


def _parts(tree: nodes.Node) -> frozenset[tuple[str, str]]:
    """What is taken of names: (`steps`, `fetch`) for `steps.fetch.result` and `steps["fetch"]`."""
    found: set[tuple[str, str]] = set()
    for node in _all(tree):
        match node:
            case nodes.Getattr(node=nodes.Name(name=name), attr=part):
                found.add((name, part))
            case nodes.Getitem(node=nodes.Name(name=name), arg=nodes.Const(value=str(part))):
                found.add((name, part))
            case _:
                pass
    return frozenset(found)


def _all(tree: nodes.Node) -> Iterator[nodes.Node]:
    yield tree
    yield from tree.find_all(nodes.Node)


def _compiled(tree: nodes.Template) -> Any:
    tree.set_environment(_SANDBOX)
    return _SANDBOX.from_string(tree)
