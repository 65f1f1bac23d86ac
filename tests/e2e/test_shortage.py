"""Folders, space and descriptors that are missing: a pause, and not a failure."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from itertools import cycle, islice
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from redrive.protocol.queries import Doctor
from support.daemon import eventually
from support.faults import HANDLERS, PATIENT, TASKS
from support.trial import Trial, trial


def test_f49_a_lost_folder_of_outputs_stops_nothing_and_comes_back(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start()
        outputs = tmp_path / "state" / "outputs"
        for id in (daemon.enqueue("say"), daemon.enqueue("shout", n=1)):
            daemon.until_ended(id)
        outputs.rename(tmp_path / "moved_away")
        outputs.write_text("in the way")  # root may write to what is read-only, not to this
        for id in (
            daemon.enqueue("say"),
            daemon.enqueue("shout", n=1),
            daemon.enqueue("shout", n=2),
        ):
            assert daemon.until_ended(id).state is JobState.DONE
        outputs.unlink()
        for n in range(5):  # each of the workers must find its folder again
            daemon.until_ended(daemon.enqueue("shout", n=n))
        said, shouted = daemon.enqueue("say"), daemon.enqueue("shout", n=1)

        assert daemon.until_ended(said).state is JobState.DONE
        assert daemon.until_ended(shouted).state is JobState.DONE
        assert daemon.ask.log(said).data == b"said\n"
        assert daemon.ask.log(shouted).data == b"x" * 1000 + b"\n"


PRINTING = """
[tasks.count]
command = "for i in 1 2 3 4 5 6 7 8 9; do echo $i; sleep 0.3; done"
heartbeat = { from = "output", every = "100ms", stalled_after = "800ms" }
retry = 1
[tasks.count_in_python]
python = "handlers:count_slowly"
heartbeat = { from = "output", every = "100ms", stalled_after = "800ms" }
retry = 1
[tasks.mute]
command = ["sleep", "600"]
heartbeat = { from = "output", every = "100ms", stalled_after = "800ms" }
retry = 1
[tasks.mute_for_long]
command = ["sleep", "600"]
heartbeat = { from = "output", every = "100ms", stalled_after = "800ms" }
timeout = "3s"
retry = 1
"""
COUNTING = """
def count_slowly():
    for n in range(9):
        print(n)
        time.sleep(0.3)
"""


def test_whose_output_cannot_be_seen_is_not_taken_for_silent(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS + PRINTING, HANDLERS + COUNTING) as daemon:
        daemon.start()
        outputs = tmp_path / "state" / "outputs"
        daemon.until_ended(daemon.enqueue("shout", n=1))  # a worker is up, and has its file
        begun_before = [daemon.enqueue("count"), daemon.enqueue("count_in_python")]
        for id in begun_before:
            daemon.until_told(id, "action_started")
        outputs.rename(tmp_path / "moved_away")
        outputs.write_text("in the way")
        begun_after = [daemon.enqueue("count"), daemon.enqueue("count_in_python")]
        daemon.until_told(begun_after[0], "action_started")
        why = f"what jobs print is not kept just now: Not a directory: {outputs}/slots"
        [told] = daemon.ask.status().attention
        assert (told.kind, told.text[: len(why)]) == ("output", why)
        [found] = [check for check in daemon.ask.ask(Doctor()).checks if check.name == "output"]
        assert (found.ok, found.text[: len(why)]) == (False, why)
        for id in (*begun_before, *begun_after):
            daemon.until_done_at_once(id)
        late = daemon.until_ended(daemon.enqueue("mute_for_long"))
        assert late.error is not None
        assert late.error.error_type == "timeout"  # a deadline is judged by the clock

        outputs.unlink()
        silent = daemon.until_ended(daemon.enqueue("mute"))
        assert silent.error is not None
        assert silent.error.error_type == "stalled"
        assert daemon.ask.status().attention[0].kind == "dead"


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """The folder of outputs, on a disk that is full after a few pages."""
    folder = tmp_path / "state" / "outputs"
    folder.mkdir(parents=True)
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder], check=False
    )
    if mounted.returncode:
        pytest.skip("needs the right to mount")
    yield folder
    while folder.is_mount():  # a test may have put another one above it
        subprocess.run(["umount", "-l", folder], check=True)


def test_f18_a_disk_full_of_outputs_costs_words_not_jobs(tmp_path: Path, small_disk: Path) -> None:
    tasks = (
        TASKS
        + """
[tasks.fill]
command = "head -c 1000000 /dev/zero; true"
"""
    )
    with trial(tmp_path, tasks, HANDLERS) as daemon:
        daemon.start()
        ids = [daemon.enqueue("fill")]
        ids += daemon.enqueue_many("shout", 200)
        ids += [daemon.enqueue("fill") for _ in range(5)]
        for id in ids:
            assert daemon.until_ended(id).state is JobState.DONE
        for file in small_disk.rglob("*.out"):
            file.unlink()  # somebody makes room
        id = daemon.enqueue("say")
        daemon.until_ended(id)
        assert daemon.ask.log(id).data == b"said\n"


def test_what_a_full_disk_swallows_is_nobodys_silence(tmp_path: Path, small_disk: Path) -> None:
    with trial(tmp_path, TASKS + PRINTING, HANDLERS + COUNTING) as daemon:
        daemon.start()
        daemon.until_ended(daemon.enqueue("shout", n=1))
        ids = [daemon.enqueue("count"), daemon.enqueue("count_in_python")]
        for id in ids:
            daemon.until_told(id, "action_started")
        filler = small_disk / "filler"
        with suppress(OSError), filler.open("wb", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
        for id in ids:
            daemon.until_done_at_once(id)


@pytest.mark.parametrize("is_before", [True, False])
def test_a_file_system_of_outputs_that_is_read_only_costs_words_not_jobs(
    tmp_path: Path, small_disk: Path, is_before: bool
) -> None:
    def make_read_only() -> None:  # by another one above: in this, workers have open files
        subprocess.run(["mount", "-t", "tmpfs", "-o", "ro", "none", small_disk], check=True)

    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        if is_before:
            make_read_only()
        daemon.start()
        if not is_before:
            for id in (daemon.enqueue("say"), daemon.enqueue("shout", n=0)):
                daemon.until_ended(id)
            make_read_only()
        for id in [daemon.enqueue("say") for _ in range(3)] + daemon.enqueue_many("shout", 20):
            assert daemon.until_ended(id).state is JobState.DONE
        lost = daemon.until_ended(daemon.enqueue("vanish_once"))
        assert (lost.state, lost.error and lost.error.error_type) == (JobState.DEAD, "lost")
        assert "Read-only file system" in daemon.log.read_text()

        subprocess.run(["umount", "-l", small_disk], check=True)  # somebody mends it
        id = daemon.enqueue("say")
        assert daemon.until_ended(id).state is JobState.DONE
        assert daemon.ask.log(id).data == b"said\n"


WIDE = PATIENT.replace("concurrency = 4", "concurrency = 400")


def until_one_goes_back(daemon: Trial) -> None:
    """There are no descriptors left for all that were leased."""
    eventually(
        lambda: "job_interrupted" in {event.type for event in daemon.events()},
        "a job goes back",
        every=0.5,
    )


def sockets_of(daemon: Trial) -> Iterator[str]:
    """One after the other, for ever."""
    return cycle(str(daemon.folder / "run" / name) for name in ("control", "query", "events"))


def connect(open_ones: ExitStack, place: str) -> None:
    one = open_ones.enter_context(socket.socket(socket.AF_UNIX))
    with suppress(OSError):  # it may be sent away before it knows that it is in
        one.connect(place)


def test_f53_no_descriptors_left_is_a_pause_not_a_failure(tmp_path: Path) -> None:
    tasks = (
        TASKS
        + """
[tasks.nap]
command = "until [ -e go ]; do sleep 0.5; done"
"""
    )
    with trial(tmp_path, tasks, HANDLERS, WIDE) as daemon:
        daemon.start(open_files=256)
        ids = daemon.enqueue_many("nap", 400)
        until_one_goes_back(daemon)
        for _ in range(20):  # whoever comes now is answered
            with daemon.client() as client:
                assert client.status().states["queued"] > 100
        (tmp_path / "go").touch()
        daemon.until_all_ended()

        states = Counter(daemon.job(id).state for id in ids[::10])
        assert set(states) == {JobState.DONE}
        daemon.check_execution_counts(ids[::10])


def test_calls_leave_descriptors_for_whoever_comes(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0), backlog=400) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        tasks = f'{TASKS}\n[tasks.call]\nhttp = {{ url = "{url}" }}\n'
        with trial(tmp_path, tasks, HANDLERS, WIDE) as daemon:
            daemon.start(open_files=256)
            daemon.enqueue_many("call", 400)
            until_one_goes_back(daemon)
            for _ in range(60):
                with daemon.client() as client:
                    assert client.status().states["queued"] > 100


def test_clients_that_come_all_at_once_beside_much_work_find_the_daemon(tmp_path: Path) -> None:
    tasks = TASKS + '\n[tasks.nap]\ncommand = ["sleep", "300"]\n'
    with trial(tmp_path, tasks, HANDLERS, WIDE) as daemon:
        daemon.start(open_files=256)
        daemon.enqueue_many("nap", 100)
        until_one_goes_back(daemon)
        with ExitStack() as open_ones:
            for place in islice(sockets_of(daemon), 120):
                connect(open_ones, place)
            assert daemon.ask.status().states["leased"] > 0


def test_what_there_is_room_for_runs_and_the_rest_is_hardly_tried(tmp_path: Path) -> None:
    tasks = TASKS + '\n[tasks.nap]\ncommand = ["sleep", "0.2"]\n'
    with trial(tmp_path, tasks, HANDLERS, WIDE) as daemon:
        daemon.start(open_files=256)
        ids = daemon.enqueue_many("nap", 800)
        daemon.until_all_ended()

        counts = Counter(event.type for event in daemon.events())
        assert counts["action_completed"] == len(ids)
        # Each slot has one at first; it was eighteen times as many as there are jobs.
        assert counts["job_interrupted"] < 3 * len(ids)


def test_connections_that_take_all_descriptors_do_not_end_the_daemon(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start(open_files=256)
        daemon.until_ended(daemon.enqueue("say"))  # who is there already stays
        with ExitStack() as open_ones:
            for place in islice(sockets_of(daemon), 300):
                connect(open_ones, place)
                daemon.ask.status()  # by now it has been seen
            waits = daemon.enqueue("say")
        assert daemon.until_ended(waits).state is JobState.DONE
        with daemon.client() as client:
            assert client.status().states["done"] == 2
