"""docs/protocol.md says what the structs say."""

from __future__ import annotations

import json
import re

import msgspec

from redrive.errors import RedriveError
from redrive.protocol import VERSION
from redrive.protocol.codec import decode_answer, decode_as, decode_call, decode_query
from redrive.protocol.envelope import MAX_MESSAGE, MAX_QUERY
from redrive.protocol.queries import Hello, ShowJob, Welcome
from support.protocol_doc import DOCUMENT, MARK, rendered

WRITTEN = DOCUMENT.read_text()


def test_every_message_is_documented_as_it_is() -> None:
    """If not: `PYTHONPATH=tests python -m support.protocol_doc`."""
    assert WRITTEN.partition(MARK)[2] == rendered().removeprefix(MARK)


def test_every_refusal_that_a_daemon_can_give_is_documented() -> None:
    at_home = {"unreachable", "already_running"}  # said by the client and at the start
    for kind in RedriveError.__subclasses__():
        if kind.__module__ == "redrive.errors" and kind.code not in at_home:
            assert f"| `{kind.code}` | {int(kind.exit_code)} |" in WRITTEN


def test_the_sizes_are_those_of_the_code() -> None:
    assert f"| a request over `query` | {MAX_QUERY // 1024} KiB |" in WRITTEN
    assert f"an answer | {MAX_MESSAGE // 1024 // 1024} MiB |" in WRITTEN


def test_the_examples_are_what_travels() -> None:
    found = re.search(r"```json\n(.+?)```", WRITTEN, re.DOTALL)
    assert found is not None
    lines = [msgspec.msgpack.encode(json.loads(line)) for line in found[1].splitlines()]
    asked = [decode_query(decode_call(lines[n])) for n in (0, 2)]
    assert asked == [Hello(version=VERSION, client="mine"), ShowJob(id=12)]
    answered, refused = decode_answer(lines[1]), decode_answer(lines[3])
    assert decode_as(Welcome, answered.body).version == VERSION
    assert refused.refusal is not None
    assert refused.refusal.code == "not_found"
    assert f"This page is about version {VERSION}." in WRITTEN
