"""A call's body as a request of the role it came for, or an error that says what it was."""

from __future__ import annotations

import re
from typing import get_args

import msgspec
from msgspec import Struct

from redrive.clock import SECOND
from redrive.errors import NotAllowed, TryLater, UsageProblem
from redrive.keys import Role
from redrive.protocol import codec
from redrive.protocol.commands import Command
from redrive.protocol.envelope import Call, Request
from redrive.protocol.queries import Query
from redrived.bus import Asker

LONGEST_WAIT = 86400.0  # seconds for an answer
LARGEST_NUMBER = 2**63 - 1  # as databases have them; a message could hold twice as much

_ID = re.compile(r"[0-9A-Za-z_-]{1,64}")


class UnknownCommand(UsageProblem):
    """A name that is in no table."""

    code = "unknown_command"


class _Named(Struct):
    """Just enough of a request to say what it claims to be."""

    type: str


def request_types(role: Role) -> dict[str, type[Request]]:
    """What can be asked over the socket of a role, by its name on the wire."""
    kinds: tuple[type[Request], ...] = get_args(Query if role == "viewer" else Command)
    return {str(kind.__struct_config__.tag): kind for kind in kinds}


_READS = request_types("viewer")
_CHANGES = request_types("operator")


def check_call(call: Call) -> None:
    if not _ID.fullmatch(call.id):
        raise UsageProblem(
            f"{call.id[:64]!a} cannot be the id of a request",
            hint="use 1 to 64 letters, digits, - and _",
        )
    # NaN is refused by this too; in the loop's timers it would disorder all of them.
    if call.timeout is not None and not 0 <= call.timeout <= LONGEST_WAIT:
        raise UsageProblem(
            f"nobody waits {call.timeout:g} s for an answer",
            hint=f"use a timeout from 0 to {LONGEST_WAIT:g} s, or none",
        )


def check_age(call: Call, asker: Asker, now: int) -> None:
    """Refuse what its asker has given up already; it lay here while the daemon stood still.

    Only where both look at the same clock: another machine's may be wrong.
    """
    if call.sent_at is None or call.timeout is None or asker.uid is None:
        return
    age = (now - call.sent_at) / SECOND
    if age > call.timeout:
        raise TryLater(
            f"the request came {age:.1f} s after it was sent, to be answered in {call.timeout:g} s",
            hint="nothing was changed; ask again",
        )


def read_request(role: Role, call: Call) -> Request:
    try:
        request = codec.decode_query(call) if role == "viewer" else codec.decode_command(call)
    except UsageProblem as problem:
        raise _explained(role, call, problem) from None
    for field in request.__struct_fields__:
        value = getattr(request, field)
        if isinstance(value, int) and value > LARGEST_NUMBER:
            raise UsageProblem(f"{field} cannot be {value}", hint=f"{LARGEST_NUMBER} is the most")
    return request


def _explained(role: Role, call: Call, problem: UsageProblem) -> Exception:
    try:
        name = msgspec.msgpack.decode(call.body, type=_Named).type
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return problem
    if name in (_READS if role == "viewer" else _CHANGES):
        problem.hint = f"docs/protocol.md has the fields of {name} and their types"
        return problem
    if name in _CHANGES:
        return NotAllowed(
            f"{name} changes something, and this socket is for looking",
            hint="send it to `control`; `operators` in `[bus]` names the group that may",
        )
    if name in _READS:
        return UsageProblem(
            f"{name} only looks, and this socket is for changes", hint="send it to `query`"
        )
    return UnknownCommand(
        f"there is no request named {name[:40]!a}",
        hint="`redrive --version` on both sides should agree",
    )
