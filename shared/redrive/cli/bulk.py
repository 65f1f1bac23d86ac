"""What is told of many jobs or runs that were asked for at once."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from redrive.cli import waiting, words
from redrive.cli.output import print_json, say
from redrive.cli.settings import Settings
from redrive.errors import Exit, UsageProblem
from redrive.protocol.commands import Enqueued, Started

if TYPE_CHECKING:
    from redrive.blocking import Client

Bulk = Enqueued | Started


def tell_bulk(
    settings: Settings, client: Client, reply: Bulk, wait: bool, timeout: float | None
) -> int:
    """Their sum; with `wait`, how they ended, and the exit code that says so."""
    summary: dict[str, Any] = {
        "count": reply.count,
        "created": reply.created,
        "first_id": reply.first_id,
        "last_id": reply.last_id,
    }
    if not settings.as_json:
        say(_in_words(reply))
    elif not wait:
        print_json(summary)
    if not wait:
        return Exit.OK
    ids = _ids(reply)
    ends = client.wait(*ids, timeout=timeout)
    states = Counter(waiting.states(client, ids, ends).values())
    if settings.as_json:
        print_json({**summary, "states": states})
    elif states:
        say(words.by_state(states))
    return waiting.exit_code(ids, ends)


def _in_words(reply: Bulk) -> str:
    match reply.count:
        case 0:
            return f"there is no {_noun(reply)} in the file, nothing was done"
        case 1:
            return f"1 {_noun(reply)}: {reply.first_id}" + (
                "" if reply.created else ", known before"
            )
        case count:
            new = f"{reply.created:,} of them new"
            return f"{count:,} {_noun(reply)}s, {new}: {reply.first_id} to {reply.last_id}"


def _ids(reply: Bulk) -> list[str]:
    """Large replies name only the first and the last; ids are given out one after the other."""
    named = reply.runs if isinstance(reply, Started) else [str(job.id) for job in reply.jobs]
    if len(named) == reply.count:
        return named
    first, last = (int(str(id).removeprefix("r")) for id in (reply.first_id, reply.last_id))
    if last - first + 1 == reply.count:
        letter = "r" if isinstance(reply, Started) else ""
        return [f"{letter}{number}" for number in range(first, last + 1)]
    noun = _noun(reply)
    raise UsageProblem(
        f"which {noun}s to wait for is not known: some existed, or others came in between",
        hint=f"they are all on their way; `redrive {noun}s` shows how they do",
    )


def _noun(reply: Bulk) -> str:
    return "run" if isinstance(reply, Started) else "job"
