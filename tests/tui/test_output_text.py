from __future__ import annotations

from redrive_tui.output_text import Lines, is_error, last_line


def test_a_line_is_given_out_when_its_end_has_come() -> None:
    lines = Lines()

    assert lines.feed(b"one\ntw") == ["one"]
    assert lines.feed(b"o\n") == ["two"]


def test_a_letter_cut_in_two_is_put_together() -> None:
    lines = Lines()
    first, second = "naïve\n".encode()[:3], "naïve\n".encode()[3:]

    assert lines.feed(first) + lines.feed(second) == ["naïve"]


def test_the_last_line_of_a_finished_attempt_needs_no_end() -> None:
    assert Lines().feed(b"done", finished=True) == ["done"]


def test_bytes_that_are_no_text_are_shown_as_such() -> None:
    assert Lines().feed(b"\xff\xfe\n") == ["\ufffd\ufffd"]


def test_of_a_progress_bar_the_last_state_is_left() -> None:
    assert Lines().feed(b"10%\r50%\r100%\r\n") == ["100%"]


def test_a_line_that_speaks_of_an_error_is_found() -> None:
    assert is_error("2026 ERROR smtp 451")
    assert not is_error("all is well")


def test_the_last_words_are_the_last_line_that_says_anything() -> None:
    assert last_line(b"one\n10%\r20%\n\n  \n") == "20%"
    assert last_line(b"one\ntwo") == "two"
    assert last_line(b"") == ""
