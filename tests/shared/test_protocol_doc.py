"""docs/protocol.md says what the structs say."""

from __future__ import annotations

from redrive.errors import RedriveError
from redrive.protocol.envelope import MAX_MESSAGE, MAX_QUERY
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
