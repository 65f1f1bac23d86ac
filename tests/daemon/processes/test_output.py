"""What attempts wrote can be read back, in order, for as long as it is kept."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from redrived.processes.output import Output, Outputs
from redrived.processes.output_pages import Page

LIMIT = 1 << 20


@pytest.fixture
def outputs(tmp_path: Path) -> Outputs:
    return Outputs(tmp_path)


def write(output: Output, *lines: str) -> None:
    """As a command does. `>text` goes to stderr; each line is seen before the next."""
    for line in lines:
        with open(output.paths[line.startswith(">")], "ab") as file:
            file.write(line.lstrip(">").encode())
        output.mark()


def finished(outputs: Outputs, job: int, *lines: str, execution: int = 1) -> None:
    output = outputs.open(job, execution)
    write(output, *lines)
    assert output.final_size() == sum(len(line.lstrip(">")) for line in lines)
    outputs.finish(output, LIMIT)


def text(page: Page) -> list[str]:
    return [(">" if c.stream == "err" else "") + c.data.decode() for c in page.chunks]


def data(page: Page) -> bytes:
    return b"".join(chunk.data for chunk in page.chunks)


def names(folder: Path) -> list[str]:
    return sorted(path.name for path in folder.glob("outputs/*/*"))


def test_both_streams_are_read_in_the_order_they_were_written(outputs: Outputs) -> None:
    finished(outputs, 1, "a", "b", ">c", "d", ">e", ">f")
    assert text(outputs.read(1, 1)) == ["ab", ">c", "d", ">ef"]


def test_a_stream_that_grows_alone_needs_one_mark(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    write(output, ">x", *"abcdefgh")
    assert list(output.marks) == [(0, 1), (8, 1)]


def test_reading_goes_on_where_it_stopped(outputs: Outputs) -> None:
    finished(outputs, 1, "abc", ">def", "ghi")
    first = outputs.read(1, 1, limit=5)
    assert text(first) == ["abc", ">de"]
    assert (first.next_offset, first.size, first.is_live) == (5, 9, False)
    assert text(outputs.read(1, 1, offset=first.next_offset)) == [">f", "ghi"]
    assert text(outputs.read(1, 1, offset=9)) == []


def test_what_a_follower_has_seen_keeps_its_place(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    os.write(output.err, b"1")
    seen = outputs.read(1, 1)
    assert seen.is_live
    os.write(output.out, b"2")
    os.write(output.err, b"3")
    rest = outputs.read(1, 1, offset=seen.next_offset)
    assert text(rest) == ["2", ">3"]
    outputs.finish(output, LIMIT)
    assert text(outputs.read(1, 1)) == [">1", "2", ">3"]


def test_a_follower_sees_all_of_two_streams_that_grow_while_it_looks(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    both = "[os.write(2, b'e') + os.write(1, b'oo') for n in range(150_000)]"
    program = [sys.executable, "-c", f"import os; {both}"]
    writer = subprocess.Popen(program, stdout=output.out, stderr=output.err)
    seen = b""
    while writer.poll() is None:
        seen += data(outputs.read(1, 1, offset=len(seen), limit=LIMIT))
    outputs.finish(output, LIMIT)
    seen += data(outputs.read(1, 1, offset=len(seen), limit=LIMIT))

    assert seen == data(outputs.read(1, 1, limit=LIMIT))


def test_what_cannot_be_read_is_no_last_word(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    os.write(output.err, b"why")
    assert output.tail(output.err, 2) == b"hy"
    assert output.tail(-1, 2) == b""


def test_bytes_are_kept_as_they_are(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    os.write(output.out, b"\xff\0\x1b[31m")
    outputs.finish(output, LIMIT)
    assert outputs.read(1, 1).chunks[0].data == b"\xff\0\x1b[31m"


def test_the_tail_is_the_end_of_both(outputs: Outputs) -> None:
    finished(outputs, 1, "abc", ">def")
    assert text(outputs.tail(1, 1, 4)) == ["c", ">def"]


def test_without_an_index_stdout_comes_first(outputs: Outputs, tmp_path: Path) -> None:
    """As after the death of the daemon."""
    finished(outputs, 1, ">e", "o")
    (tmp_path / "outputs" / "0" / "1.1.idx").unlink()
    assert text(outputs.read(1, 1)) == ["o", ">e"]


def test_an_index_that_is_nonsense_loses_only_the_order(outputs: Outputs, tmp_path: Path) -> None:
    finished(outputs, 1, ">e", "o")
    (tmp_path / "outputs" / "0" / "1.1.idx").write_bytes(b"\xff" * 21)
    assert sorted(text(outputs.read(1, 1))) == [">e", "o"]


def test_nothing_is_read_of_an_attempt_that_wrote_nothing_or_never_was(outputs: Outputs) -> None:
    finished(outputs, 1)
    assert outputs.read(1, 1).chunks == []
    assert outputs.read(999, 9).size == 0


def test_beyond_the_limit_nothing_is_kept(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    write(output, "abcdef", ">x")
    outputs.finish(output, 3)
    assert text(outputs.read(1, 1)) == ["abc", ">x"]


def test_outputs_are_for_the_daemon_only(outputs: Outputs, tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        finished(outputs, 1, "secret")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "outputs" / "0" / "1.1.out").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "outputs" / "0").stat().st_mode) == 0o700


def test_a_symbolic_link_is_not_written_through(
    outputs: Outputs, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    target = tmp_path / "precious"
    target.touch()
    (tmp_path / "outputs" / "slots").mkdir(parents=True)
    (tmp_path / "outputs" / "slots" / "0.out").symlink_to(target)
    output = outputs.open(1, 1)
    write(output, "x")
    assert "not kept until it can be again" in caplog.text
    outputs.finish(output, LIMIT)
    assert target.read_bytes() == b""


def test_a_silent_attempt_hands_its_files_on(outputs: Outputs, tmp_path: Path) -> None:
    for job in range(1, 1500):
        finished(outputs, job)
    assert names(tmp_path) == ["0.err", "0.out", "owners"]
    finished(outputs, 2000, "x")
    assert text(outputs.read(2000, 1)) == ["x"]


def test_a_file_that_a_straggler_holds_is_handed_to_nobody(outputs: Outputs) -> None:
    output = outputs.open(1, 1)
    with open(output.paths[0], "ab") as straggler:
        assert output.final_size() == 0
        outputs.finish(output, LIMIT)
        finished(outputs, 2)
        straggler.write(b"late")
    finished(outputs, 3, "on time")
    assert text(outputs.read(3, 1)) == ["on time"]
    assert text(outputs.read(1, 1)) == ["late"]


@pytest.mark.parametrize("written", [b"12", b"\0" * 48, b"no job at all".ljust(48)])
def test_an_owner_that_cannot_be_read_stops_no_start(
    outputs: Outputs, tmp_path: Path, written: bytes
) -> None:
    write(outputs.open(1, 1), "of whom?")
    (tmp_path / "outputs" / "slots" / "owners").write_bytes(written)
    after = Outputs(tmp_path)
    finished(after, 2, "of the second")
    assert text(after.read(2, 1)) == ["of the second"]


def test_the_outputs_of_a_daemon_that_died_are_found(outputs: Outputs, tmp_path: Path) -> None:
    for job in (1, 2, 3):
        write(outputs.open(job, 5), *[f"said by {job}"] * (job != 2))
    again = Outputs(tmp_path)
    assert text(again.read(1, 5)) == ["said by 1"]
    assert text(again.read(2, 5)) == []
    assert text(again.read(3, 5)) == ["said by 3"]
    finished(again, 4, "new")
    assert text(again.read(4, 1)) == ["new"]


def test_outputs_go_with_their_jobs(outputs: Outputs, tmp_path: Path) -> None:
    for job in (1, 2, 1001):
        finished(outputs, job, "x", ">y")
    finished(outputs, 1, "x", execution=2)
    outputs.remove([1, 1001, 77_000])
    assert [name for name in names(tmp_path) if name.count(".") == 2] == [
        "2.1.err",
        "2.1.idx",
        "2.1.out",
    ]


def test_old_outputs_go_and_live_ones_stay(outputs: Outputs, tmp_path: Path) -> None:
    finished(outputs, 1, "old")
    finished(outputs, 1002, "new")
    live = outputs.open(3, 1)
    other = tmp_path / "outputs" / "live" / "w1"
    other.parent.mkdir()
    other.touch()
    for path in tmp_path.glob("outputs/*/*"):
        if path.name != "1002.1.out":
            os.utime(path, (1000, 1000))
    outputs.prune(before=2000)
    assert set(names(tmp_path)) >= {"1002.1.out", "w1"}
    assert "1.1.out" not in names(tmp_path)
    write(live, "still here")
    assert text(outputs.read(3, 1)) == ["still here"]
