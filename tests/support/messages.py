"""Every message that travels, and an example of each with no field left out.

Run as a program it writes the golden bytes of messages that have none. It never touches
those that are there: what was sent once must be readable for ever.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, get_args

import msgspec
from msgspec import Struct, inspect

from redrive.protocol import announcements, commands, envelope, queries
from redrive.protocol.codec import encode

GOLDEN = Path(__file__).parents[1] / "shared" / "protocol" / "golden"

_REQUESTS: tuple[type[envelope.Request], ...] = (
    *get_args(queries.Query),
    *get_args(commands.Command),
)
_KINDS: tuple[type[Struct], ...] = (
    *_REQUESTS,
    *(request.Reply for request in _REQUESTS),
    envelope.Call,
    envelope.Answer,
    envelope.Refusal,
    announcements.EventBatch,
    announcements.Head,
    announcements.Vitals,
)
MESSAGES = {kind.__name__: kind for kind in _KINDS}


def golden(name: str) -> bytes:
    return bytes.fromhex((GOLDEN / f"{name}.hex").read_text())


def example(kind: type[Struct]) -> Any:
    return _value(inspect.type_info(kind), "")


def _value(kind: inspect.Type, name: str) -> Any:
    match kind:
        case inspect.StructType():
            return kind.cls(**{each.name: _value(each.type, each.name) for each in kind.fields})
        case inspect.Metadata():
            return _value(kind.type, name)
        case inspect.UnionType():
            return _value(next(each for each in kind.types if each != inspect.NoneType()), name)
        case inspect.ListType():
            return [_value(kind.item_type, name)]
        case inspect.TupleType():
            return tuple(_value(each, name) for each in kind.item_types)
        case inspect.DictType():
            return {_value(kind.key_type, name): _value(kind.value_type, name)}
        case inspect.EnumType():
            return next(iter(kind.cls))
        case inspect.LiteralType():
            return kind.values[0]
        case inspect.RawType():
            return msgspec.Raw(encode({"raw": True}))
        case inspect.AnyType():
            return {"any": [1, None, "text"]}
        case inspect.BytesType():
            return b"\x00\xff"
        case inspect.StrType():
            return name or "text"
        case inspect.BoolType():
            return True
        case inspect.IntType():
            return 1000 + len(name)
        case inspect.FloatType():
            return 1.5
        case _:
            raise NotImplementedError(f"no example of {kind}")


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for name, kind in MESSAGES.items():
        path = GOLDEN / f"{name}.hex"
        if not path.exists():
            path.write_text(encode(example(kind)).hex("\n", 32) + "\n")
            print(f"wrote {path.name}")


if __name__ == "__main__":
    main()
