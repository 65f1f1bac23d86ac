"""Folders, space and descriptors that are missing: a pause, and not a failure."""

from __future__ import annotations

import socket
import subprocess
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from redrive.lifecycle import JobState
from support.daemon import eventually
from support.faults import HANDLERS, PATIENT, TASKS
from support.trial import trial


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


def test_f53_no_descriptors_left_is_a_pause_not_a_failure(tmp_path: Path) -> None:
    base = PATIENT.replace("concurrency = 4", "concurrency = 400")
    tasks = (
        TASKS
        + """
[tasks.nap]
command = "until [ -e go ]; do sleep 0.5; done"
"""
    )
    with trial(tmp_path, tasks, HANDLERS, base) as daemon:
        daemon.start(open_files=256)
        ids = daemon.enqueue_many("nap", 400)
        eventually(
            lambda: "job_interrupted" in {event.type for event in daemon.events()},
            "no descriptors left",
            every=0.5,
        )
        for _ in range(20):  # whoever comes now is answered
            with daemon.client() as client:
                assert client.status().states["queued"] > 100
        (tmp_path / "go").touch()
        daemon.until_all_ended()

        states = Counter(daemon.job(id).state for id in ids[::10])
        assert set(states) == {JobState.DONE}
        daemon.check_execution_counts(ids[::10])


def test_connections_that_take_all_descriptors_do_not_end_the_daemon(tmp_path: Path) -> None:
    with trial(tmp_path, TASKS, HANDLERS) as daemon:
        daemon.start(open_files=256)
        daemon.until_ended(daemon.enqueue("say"))  # who is there already stays
        places = [str(tmp_path / "run" / name) for name in ("control", "query", "events")]
        with ExitStack() as open_ones:
            for n in range(300):
                one = open_ones.enter_context(socket.socket(socket.AF_UNIX))
                with suppress(OSError):  # it may be sent away before it knows that it is in
                    one.connect(places[n % len(places)])
                daemon.ask.status()  # by now it has been seen
            waits = daemon.enqueue("say")
        assert daemon.until_ended(waits).state is JobState.DONE
        with daemon.client() as client:
            assert client.status().states["done"] == 2
