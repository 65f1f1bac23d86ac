"""The life of a job as it is drawn: text grids, so that they can be read here."""

from __future__ import annotations

from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.lifecycle import JobState
from redrive.models import Attempt, Event
from redrive_tui.formatting import Line, Look, plain_text, width_of
from redrive_tui.timeline import timeline
from support import incident
from support.incident import MINUTE, NOW

LOOK = Look()


def drawn(lines: list[Line]) -> list[str]:
    return [plain_text(line).rstrip() for line in lines]


def test_attempts_waits_and_plan_stand_under_each_other() -> None:
    lines = drawn(timeline(incident.detail(), [], NOW, LOOK, 100))

    assert lines[2:11] == [
        "ATT  STARTED         RAN  RESULT                                  NODE      WAIT AFTER",
        "  1  13:55:03       1.2s  ✗ connection_error: ConnectionResetEr›  w1        15s     ╸",
        "  2  13:55:19       0.9s  ✗ connection_error: ConnectionResetEr›  w2        2m00s   ╸",
        "  3  13:57:20        30s  ✗ connection_error: ConnectionResetEr›  w1        16m11s  ━╸",
        "  4  ~14:14:01            ◷ in 41s                                          2h07m   ━━━━━━━━━━━╸",
        "  5  ~16:21:20            ◷ in 2h08m                                        3h00m   ━━━━━━━━━━━━━━━━",
        "  6  ~19:21:20            ◷ in 5h08m                                        3h00m   ━━━━━━━━━━━━━━━━",
        "  7  ~22:21:20            ◷ in 8h08m                                        3h00m   ━━━━━━━━━━━━━━━━",
        "  8  ~Tue 01:21           ◷ in 11h08m, then dead",
    ]


def test_past_and_future_share_one_axis_with_now_in_it() -> None:
    lines = drawn(timeline(incident.detail(), [], NOW, LOOK, 80))
    axis = next(line for line in lines if "┃" in line)

    assert axis.startswith("13:55:03 ✗")
    assert axis.endswith("8 ~Tue 01:21")
    assert [mark for mark in axis if mark in "✗┃45678"][-6:] == ["┃", "4", "5", "6", "7", "8"]


def test_an_attempt_of_another_day_is_told_with_its_day() -> None:
    later = NOW + 3 * 24 * 60 * MINUTE
    lines = drawn(timeline(incident.detail(), [], later, LOOK, 100))

    assert lines[3].startswith("  1  Mon 13:55 ")


def test_nothing_is_wider_than_the_terminal() -> None:
    for width in (58, 76, 80, 120, 200):
        for line in timeline(incident.detail(), [], NOW, LOOK, width)[2:14]:
            assert width_of(line) <= width


def test_a_life_given_by_hand_is_a_row_of_its_own_with_who_and_why() -> None:
    events = [
        Event(
            seq=1,
            at=NOW - 17 * MINUTE,
            type="job_requeued",
            job=240,
            data={"by": "anna", "reason": "db2 is back"},
        )
    ]

    lines = drawn(timeline(incident.detail(), events, NOW, LOOK, 100))

    assert '  »  13:56:20  requeued: a new life, by anna, "db2 is back"' in lines
    assert lines.index('  »  13:56:20  requeued: a new life, by anna, "db2 is back"') == 5


def test_a_running_attempt_shows_how_long_it_has_been_running() -> None:
    running = Attempt(execution=1, attempt=1, life=1, started_at=NOW - 5 * SECOND, node="w1")
    detail = replace(incident.detail(), history=[running], plan=[])

    lines = drawn(timeline(detail, [], NOW, LOOK, 100))

    assert lines[3].startswith("  1  14:13:15      5.0s  ► running")


def test_an_attempt_that_is_due_waits_for_a_slot() -> None:
    detail = incident.detail()

    lines = drawn(timeline(detail, [], detail.plan[0].at + SECOND, LOOK, 100))

    assert "▸ due, waits for a slot" in lines[6]


def test_what_follows_a_running_attempt_waits_for_its_end_and_not_for_a_slot() -> None:
    detail = incident.detail()
    detail = replace(detail, job=replace(detail.job, state=JobState.LEASED))

    lines = drawn(timeline(detail, [], detail.plan[0].at + SECOND, LOOK, 100))

    assert "▸ once this attempt has failed" in lines[6]


def test_in_ascii_nothing_but_ascii_is_drawn() -> None:
    for line in timeline(incident.detail(), [], NOW, Look(ascii=True), 100)[2:14]:
        assert plain_text(line).replace("›", "").isascii()


def test_a_result_that_could_not_be_kept_is_told_under_its_attempt() -> None:
    note = "no result: its last line has more than 65536 bytes"
    detail = incident.detail()
    last = replace(detail.history[-1], outcome="done", error=None, result_note=note)
    lines = drawn(timeline(replace(detail, history=[last]), [], NOW, LOOK, 100))

    assert lines[4] == f"     ! {note}"


def began(attempt: Attempt) -> Event:
    assert attempt.started_at is not None
    return Event(
        seq=8, at=attempt.started_at, type="action_started", job=240, attempt=attempt.attempt
    )


def test_what_an_attempt_left_behind_stands_under_it() -> None:
    detail = incident.detail()
    ended = Event(
        seq=9, at=NOW, type="job_killed", job=240, attempt=2, data={"unkillable": [4711, 4712]}
    )
    lines = drawn(timeline(detail, [began(detail.history[1]), ended], NOW, LOOK, 100))
    second = next(place for place, line in enumerate(lines) if line.startswith("  2  "))

    assert lines[second + 1] == "     ! unkillable, still there: pid 4711, 4712"


def test_what_is_left_of_a_later_life_does_not_stand_under_the_first() -> None:
    detail = incident.detail()
    first, second, _ = detail.history
    again = replace(second, attempt=1, life=2)
    events = [
        began(first),
        began(again),
        Event(seq=9, at=NOW, type="job_killed", job=240, attempt=1, data={"escaped": [4711]}),
    ]
    lines = drawn(timeline(replace(detail, history=[first, again]), events, NOW, LOOK, 100))
    told = next(place for place, line in enumerate(lines) if "4711" in line)

    assert lines[told - 1].startswith("  2  ")


def test_what_could_not_be_killed_is_shown_until_the_attempt_is_over() -> None:
    detail = incident.detail()
    stuck = Event(
        seq=9, at=NOW, type="action_unkillable", job=240, attempt=2, data={"unkillable": [4711]}
    )
    killed = Event(seq=10, at=NOW, type="job_killed", job=240, attempt=2)

    def is_shown(events: list[Event]) -> bool:
        told = [began(detail.history[1]), *events]
        return any("4711" in line for line in drawn(timeline(detail, told, NOW, LOOK, 100)))

    assert is_shown([stuck])
    assert not is_shown([stuck, killed])
