"""What makes two errors the same error."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from redrive.fingerprint import LONGEST_SIGNATURE, fingerprint, signature


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        ("took 1,234.5 ms for 3 rows", "took <n> ms for <n> rows"),
        ("job 0f8fad5b-d9cb-469f-a165-70867728950e failed", "job <id> failed"),
        ("commit 3f2a9c81 at 0x7f2a", "commit <id> at <id>"),
        ("id 01ARZ3NDEKTSV4RRFFQ69G5FAV", "id <id>"),
        ("no mail for bob.smith+x@example.com", "no mail for <id>"),
        ("dial 10.0.0.1:443 or [::1]:80 or 2001:db8::1", "dial <host> or <host> or <host>"),
        ("lookup db-3.internal:5432", "lookup <host>"),
        ("localhost:27017: refused", "<host>: refused"),
        ("GET https://api.example.com:8443/v1/jobs/12?x=1 failed", "GET https://<host> failed"),
        ("cat: /mnt/usb/x: Input/output error", "cat: <path>: Input/output error"),
        (r"cannot open C:\data\in.csv", "cannot open <path>"),
        ('relation "users" does not exist', "relation <value> does not exist"),
        ("can't open 'a b' or `c`", "can't open <value> or <value>"),
        ("utf8, S3, HY000 and sha256 are words", "utf8, S3, HY000 and sha256 are words"),
        ("first line\nsecond line", "first line"),
        ("\x1b[1m\n\x1b[31merror\x1b[0m: no such table", "error: no such table"),
        ("\n\n  spaced   out ", "spaced out"),
        ("", ""),
        (
            'Traceback (most recent call last):\n  File "x.py", line 1, in f\nValueError: 7 is odd',
            "ValueError: <n> is odd",
        ),
    ],
)
def test_what_changes_from_job_to_job_is_taken_out(message: str, expected: str) -> None:
    assert signature(message) == expected


def frames(*lines: str) -> str:
    return "\n".join(["Traceback (most recent call last):", *lines, "ValueError: x"])


def test_alike_failures_share_a_fingerprint() -> None:
    one = fingerprint("timeout", "no answer from 10.0.0.1:80 in 30 s")
    other = fingerprint("timeout", "no answer from 10.9.0.7:8080 in 5 s")

    assert one == other
    assert len(one) == 12
    assert int(one, 16)


def test_the_type_the_wording_and_the_place_tell_failures_apart() -> None:
    base = fingerprint("timeout", "no answer")

    assert fingerprint("lost", "no answer") != base
    assert fingerprint("timeout", "no reply") != base
    assert fingerprint("timeout", "no answer", frames('  File "/a/x.py", line 3, in f')) != base


def test_the_innermost_frame_counts_without_its_line_and_folder() -> None:
    deep = frames('  File "/srv/main.py", line 1, in main', '  File "/srv/x.py", line 3, in f')
    moved = frames('  File "/opt/x.py", line 30, in f')
    elsewhere = frames('  File "/srv/x.py", line 3, in g')

    assert fingerprint("e", "m", deep) == fingerprint("e", "m", moved)
    assert fingerprint("e", "m", deep) != fingerprint("e", "m", elsewhere)


def test_a_fingerprint_stays_what_it_is_across_versions() -> None:
    assert fingerprint("timeout", "no answer in 30 s") == "2f8537da6a12"


@given(message=st.text(max_size=500) | st.text(alphabet="a0:.'/[]@<>-\\ ", max_size=500))
def test_any_message_has_a_signature_no_longer_than_what_it_is_made_of(message: str) -> None:
    # The shortest thing taken out is a digit, the longest placeholder has seven characters.
    assert len(signature(message)) <= 7 * LONGEST_SIGNATURE


@given(number=st.integers(0, 10**12), name=st.text(alphabet="abc xyz", max_size=20))
def test_neither_numbers_nor_quoted_values_split_a_group(number: int, name: str) -> None:
    varied = fingerprint("e", f'row {number} of "{name}"')

    assert varied == fingerprint("e", 'row 1 of "x"')
