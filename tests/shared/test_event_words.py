"""An event in one line: what matters of its data, whatever that is."""

from __future__ import annotations

from typing import Any

import pytest

from redrive.event_words import words_of
from redrive.models import Event

BECAUSE = "attempt 1 of 4 failed with KeyError (unknown): next in 1.97 s"


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({}, ""),
        ({"by": "ann", "was": "dead", "life": 2}, "by ann, was dead, life 2"),
        (
            {
                "delay": 1.97,
                "available_at": "2026-01-01T00:00:00Z",
                "decision": {"because": BECAUSE},
            },
            BECAUSE,
        ),
        (
            {
                "error": {"error_type": "disk", "message": "no\n  space", "traceback": "Trace..."},
                "evidence": {"exception": ["OSError"]},
                "log": "1.1",
            },
            "error disk: no space",
        ),
        ({"left": {"escaped": [4711]}, "why": None}, 'left {"escaped": [4711]}'),
        ({"reason": "lost"}, "reason lost"),
    ],
)
def test_an_event_says_what_matters_in_one_line(data: dict[str, Any], words: str) -> None:
    assert words_of(Event(seq=1, at=0, type="t", data=data)) == words


@pytest.mark.parametrize(
    ("kind", "data", "words"),
    [
        ("action_lost", {"how": "the daemon died while it ran"}, "the daemon died while it ran"),
        ("job_interrupted", {"by": "the daemon was stopped"}, "the daemon was stopped"),
        ("job_restarted", {"by": "ann"}, "by ann"),
        ("job_killed", {"by": "ann", "was": "leased"}, "by ann, was running"),
        (
            "redrive_completed",
            {"redrive": 3, "skips": {"it is running": 2, "it is held": 1}},
            "redrive 3, 2 skipped: it is running; 1 skipped: it is held",
        ),
        ("action_completed", {"log": "1.1", "result_note": "no result: why"}, "no result: why"),
    ],
)
def test_a_value_that_is_a_sentence_stands_by_itself(
    kind: str, data: dict[str, Any], words: str
) -> None:
    assert words_of(Event(seq=1, at=0, type=kind, data=data)) == words


def test_a_long_value_is_cut_and_says_so() -> None:
    said = words_of(Event(seq=1, at=0, type="t", data={"by": "x" * 5000}))
    assert len(said) < 130
    assert said.endswith("…")
