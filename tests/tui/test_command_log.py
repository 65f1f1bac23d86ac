"""What was asked for and said at this console: as much as a person reads, and every open fate."""

from __future__ import annotations

from redrive_tui.command_log import KEPT, CommandLog
from redrive_tui.wishes import Fate, Ids, Wish
from support import incident


def wish(number: int) -> Wish:
    return Wish(verb="requeue", selection=Ids(ids=(str(number),)), key=str(number))


def test_the_oldest_wishes_leave_but_none_whose_fate_is_open() -> None:
    log = CommandLog()
    log.sent(wish(0), incident.NOW)
    log.sent(wish(1), incident.NOW)
    log.settle("1", Fate(word="unknown"))
    for number in range(2, KEPT + 10):
        log.sent(wish(number), incident.NOW)
        log.settle(str(number), Fate(word="done"))

    kept = [int(entry.wish.key) for entry in log.entries]
    assert kept == [0, 1, *range(12, KEPT + 10)]
    assert log.unknown == [wish(1)]


def test_what_was_said_is_kept_as_far_as_anybody_reads_back() -> None:
    log = CommandLog()
    for number in range(KEPT + 10):
        log.note(f"said {number}", incident.NOW)

    assert len(log.notes) == KEPT
    assert log.notes[-1] == (incident.NOW, f"said {KEPT + 9}")
