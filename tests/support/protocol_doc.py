"""The lists of messages in docs/protocol.md, as the structs have them.

`PYTHONPATH=tests python -m support.protocol_doc` renews them.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import NODEFAULT, Struct, structs

from redrive.protocol.announcements import EventBatch, Head, Vitals
from redrive.protocol.commands import Command
from redrive.protocol.envelope import Answer, Call, Refusal, Reply, Request
from redrive.protocol.queries import Query
from support.messages import MESSAGES

DOCUMENT = Path(__file__).parents[2] / "docs/protocol.md"
MARK = "<!-- from here on written by tests/support/protocol_doc.py -->\n"

_QUERIES: tuple[type[Request], ...] = get_args(Query)
_COMMANDS: tuple[type[Request], ...] = get_args(Command)
_COMMENT = re.compile(r"^    (\w+): .*# (.+)$", re.MULTILINE)
_ANNOTATED = re.compile(r"Annotated\[(.+), \w+\]")


def rendered() -> str:
    both = [kind for kind in _QUERIES if kind in _COMMANDS]
    replies = {kind.Reply for kind in _QUERIES + _COMMANDS}
    envelope: tuple[type[Struct], ...] = (Call, Answer, Refusal)
    announcements: tuple[type[Struct], ...] = (EventBatch, Head, Vitals)
    sections = [
        "## Envelope\n",
        *map(_record, envelope),
        "## Announcements on `events`\n",
        *map(_record, announcements),
        "## Requests over `query` and `control`\n",
        *map(_request, both),
        "## Requests over `query`\n",
        *(_request(kind) for kind in _QUERIES if kind not in both),
        "## Requests over `control`\n",
        *(_request(kind) for kind in _COMMANDS if kind not in both),
        "## Replies\n",
        *map(_record, sorted(replies, key=_title)),
        "## Records inside messages\n",
        *map(_record, sorted(_inner_records(), key=_title)),
    ]
    return MARK + "\n" + "\n".join(sections)


def renew() -> None:
    written, _, _ = DOCUMENT.read_text().partition(MARK)
    DOCUMENT.write_text(written + rendered())


def _request(kind: type[Request]) -> str:
    return "\n".join(
        [f"### {_title(kind)}\n", *_body(kind), f"Answered by `{_title(kind.Reply)}`.\n"]
    )


def _record(kind: type[Struct]) -> str:
    return "\n".join([f"### {_title(kind)}\n", *_body(kind)])


def _title(kind: type[Struct]) -> str:
    """What it is called on the wire, if it is."""
    tagged = issubclass(kind, Request | Reply)
    return str(kind.__struct_config__.tag) if tagged else kind.__name__


def _body(kind: type[Struct]) -> Iterator[str]:
    if kind.__doc__ and kind.__doc__ not in (Struct.__doc__, *_base_docs(kind)):
        yield inspect.cleandoc(kind.__doc__) + "\n"
    fields = structs.fields(kind)
    if not fields:
        yield "It has no fields.\n"
        return
    comments = dict(_COMMENT.findall(inspect.getsource(kind)))
    order = ", an array in this order" if kind.__struct_config__.array_like else ""
    yield f"| field{order} | type | default | |\n|---|---|---|---|"
    for field in fields:
        name = str(kind.__annotations__[field.name])
        written = _ANNOTATED.sub(r"\1", name).replace("|", "\\|")
        comment = comments.get(field.name, "").replace("|", "\\|")
        yield f"| `{field.name}` | `{written}` | {_default(field)} | {comment} |"
    yield ""


def _default(field: structs.FieldInfo) -> str:
    if field.default is not NODEFAULT:
        return f"`{field.default!r}`"
    if field.default_factory is not NODEFAULT:
        return f"`{field.default_factory()!r}`"
    return ""


def _base_docs(kind: type[Struct]) -> Iterator[str | None]:
    return (base.__doc__ for base in kind.__mro__[1:])


def _inner_records() -> set[type[Struct]]:
    """The structs that messages are made of, and that are no messages."""
    found: set[type[Struct]] = set()

    def look(kind: Any) -> None:
        if isinstance(kind, msgspec.inspect.StructType):
            if kind.cls in found:
                return
            found.add(kind.cls)
            for field in kind.fields:
                look(field.type)
            return
        for name in ("types", "item_types"):
            for each in getattr(kind, name, ()):
                look(each)
        for name in ("item_type", "key_type", "value_type", "type"):
            if (each := getattr(kind, name, None)) is not None:
                look(each)

    for message in MESSAGES.values():
        look(msgspec.inspect.type_info(message))
    return found - set(MESSAGES.values())


if __name__ == "__main__":
    renew()
