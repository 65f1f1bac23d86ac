"""How fresh what one sees is, in words; and what that forbids."""

from __future__ import annotations

from redrive_tui.link_state import refusal, words
from redrive_tui.mirror import Mirror
from support import incident
from support.clock import FakeClock


def told(seconds: float, word: str | None = None, retries: int = 0) -> tuple[str, str]:
    """What is told this long after the daemon was last heard."""
    clock = FakeClock()
    mirror = Mirror(clock)
    mirror.load(incident.status())
    if word is not None:
        mirror.relink(word, retries=retries)  # type: ignore[arg-type]
    clock.move(seconds)
    return words(mirror.link, clock.monotonic())


def test_a_fresh_link_is_live_and_shows_its_age() -> None:
    assert told(0.2) == ("live 0.2s", "good")


def test_a_silent_daemon_is_lagging_before_three_seconds_are_over() -> None:
    assert told(2.4)[0] == "live 2.4s"
    assert told(2.6) == ("lagging 2.6s", "warning")
    assert told(4) == ("lagging 4.0s", "warning")


def test_a_lost_link_counts_from_the_last_word_heard() -> None:
    assert told(12, "lost", retries=3) == ("lost 12s, retry 3", "error")


def test_a_restart_and_another_version_have_words_of_their_own() -> None:
    assert told(0, "restarted")[0] == "daemon restarted, re-reading"
    assert told(0, "version")[0] == "version differs"


def test_before_anything_was_heard_it_is_connecting() -> None:
    mirror = Mirror(FakeClock())

    assert words(mirror.link, mirror.clock.monotonic()) == ("connecting", "warning")


def test_nothing_may_be_changed_on_a_stale_picture() -> None:
    clock = FakeClock()
    mirror = Mirror(clock)
    mirror.load(incident.status())

    assert refusal(mirror.link, clock.monotonic()) is None
    clock.move(3.5)
    assert "may be out of date" in (refusal(mirror.link, clock.monotonic()) or "")
