"""Bytes that were sent once are understood for ever.

A message may gain fields with defaults; it may not lose, rename or retype any. What cannot
be told that way raises `VERSION`, and only then may golden bytes be written anew.
"""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from redrive.protocol.announcements import Vitals
from redrive.protocol.codec import decode_as, decode_command, decode_query, encode
from redrive.protocol.envelope import Call
from redrive.protocol.queries import Hello
from support.messages import GOLDEN, MESSAGES, example, golden


def test_every_message_has_golden_bytes_and_no_other_has() -> None:
    assert {path.stem for path in GOLDEN.glob("*.hex")} == set(MESSAGES)


@pytest.mark.parametrize("name", MESSAGES)
def test_golden_bytes_can_be_read_and_say_the_same(name: str) -> None:
    was = msgspec.msgpack.decode(golden(name))
    now = msgspec.msgpack.decode(encode(decode_as(MESSAGES[name], golden(name))))
    assert_holds(now, was)


@pytest.mark.parametrize("name", MESSAGES)
def test_a_message_with_every_field_survives_the_wire(name: str) -> None:
    message = example(MESSAGES[name])
    assert decode_as(MESSAGES[name], encode(message)) == message


def test_the_hello_is_understood_on_both_sockets() -> None:
    call = Call(id="1", body=msgspec.Raw(golden("Hello")))
    assert isinstance(decode_query(call), Hello)
    assert isinstance(decode_command(call), Hello)


def test_vitals_without_children_are_those_of_an_older_daemon() -> None:
    told = decode_as(Vitals, golden("Vitals"))
    assert [(each.cpu, each.children) for each in told.jobs] == [(1.5, None)]


def assert_holds(now: Any, was: Any) -> None:
    """Everything that `was` said is said by `now`, which may say more."""
    match was:
        case dict():
            for key, value in was.items():
                assert key in now
                assert_holds(now[key], value)
        case list():
            assert len(now) >= len(was)
            for mine, theirs in zip(now, was, strict=False):
                assert_holds(mine, theirs)
        case _:
            assert now == was
