import pytest

from redrive.job import CurrentJob, NoCurrentJob, current_job, running


class Wire:
    """A transport that remembers."""

    def __init__(self) -> None:
        self.beats: list[object] = []
        self.marks: list[list[str]] = []
        self.known: set[str] = set()
        self.claimed: set[str] = set()

    def beat(self, job: CurrentJob) -> None:
        self.beats.append(job.progress_made)

    def mark(self, job: CurrentJob, keys: list[str]) -> None:
        self.marks.append(keys)

    def marked(self, job: CurrentJob) -> set[str]:
        return self.known

    def once(self, job: CurrentJob, key: str) -> bool:
        first = key not in self.claimed
        self.claimed.add(key)
        return first


@pytest.fixture
def wire() -> Wire:
    return Wire()


def a_job(wire: Wire, *, execution: int = 1, beat_every: float = 30.0) -> CurrentJob:
    return CurrentJob(wire, beat_every, 7, 12, 1, 3, execution, {"path": "/a"})


def test_there_is_no_current_job_outside_a_job() -> None:
    with pytest.raises(NoCurrentJob, match="inside a handler"):
        current_job()


def test_the_running_job_is_the_current_one(wire: Wire) -> None:
    job = a_job(wire)
    token = running.set(job)
    try:
        assert current_job() is job
    finally:
        running.reset(token)


def test_only_the_first_of_many_beats_is_sent(wire: Wire) -> None:
    job = a_job(wire)
    for _ in range(1000):
        job.heartbeat()

    assert wire.beats == [None]


def test_every_beat_is_sent_when_the_task_asks_for_it(wire: Wire) -> None:
    job = a_job(wire, beat_every=0.0)
    job.heartbeat()
    job.heartbeat()

    assert len(wire.beats) == 2


def test_progress_counts_as_a_beat_and_the_last_word_is_kept(wire: Wire) -> None:
    job = a_job(wire)
    job.progress(1, 3, "first")
    job.progress(2, 3)
    job.heartbeat()

    assert wire.beats == [[1, 3, "first"]]
    assert job.progress_made == [2, 3, None]


@pytest.mark.parametrize("progress", [("a", "b"), (1, "10"), (True, None), (object(), 3)])
def test_progress_that_is_no_number_is_refused_where_it_is_said(
    wire: Wire, progress: tuple[float, float]
) -> None:
    job = a_job(wire)
    with pytest.raises(TypeError, match="cannot be progress: a number can"):
        job.progress(*progress)

    assert (job.progress_made, wire.beats) == (None, [])


def test_progress_beyond_every_number_is_refused_where_it_is_said(wire: Wire) -> None:
    with pytest.raises(ValueError, match="nan cannot be a metric or progress"):
        a_job(wire).progress(float("nan"), 3)


def test_a_long_text_of_progress_or_of_a_metric_is_cut(wire: Wire) -> None:
    job = a_job(wire)
    job.progress(1, 2, "t" * 10_000_000)
    job.metric("where", "w" * 201)
    job.metric("just", "w" * 200)

    assert wire.beats == [[1, 2, "t" * 199 + "…"]]
    assert job.metrics == {"where": "w" * 199 + "…", "just": "w" * 200}


def test_metrics_beyond_the_first_hundred_and_long_names_are_dropped(wire: Wire) -> None:
    job = a_job(wire)
    job.count("n" * 101)
    assert job.metrics == {}

    for n in range(200):
        job.count(f"m{n}")
    job.count("m99", 2)

    assert job.metrics is not None
    assert list(job.metrics) == [f"m{n}" for n in range(100)]
    assert job.metrics["m99"] == 3


def test_counts_add_up_and_metrics_are_set(wire: Wire) -> None:
    job = a_job(wire)
    assert job.metrics is None
    job.count("files")
    job.count("files", 2)
    job.metric("seconds", 1.5)

    assert job.metrics == {"files": 3, "seconds": 1.5}


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 10**30, object()])
def test_a_metric_that_json_cannot_hold_is_refused_where_it_is_set(
    wire: Wire, value: float
) -> None:
    with pytest.raises(ValueError, match="cannot be a metric"):
        a_job(wire).metric("bad", value)


def test_once_is_true_once(wire: Wire) -> None:
    job = a_job(wire)

    assert [job.once("mail"), job.once("mail"), job.once("charge")] == [True, False, True]


@pytest.mark.parametrize("key", ["k" * 1000, "k\0"])
def test_a_key_that_no_table_holds_is_known_by_its_digest(wire: Wire, key: str) -> None:
    job = a_job(wire)

    assert job.once(key)
    assert not job.once(key)
    assert job.once(key + "k")
    assert max(map(len, wire.claimed)) < 50
    assert "\0" not in "".join(wire.claimed)


def test_remaining_marks_an_item_after_its_work_not_before(wire: Wire) -> None:
    job = a_job(wire)
    for item in job.remaining("abc"):
        job.mark_finished()
        assert item not in {key for keys in wire.marks for key in keys}

    assert wire.marks == [["a"], ["b"], ["c"]]


def test_remaining_leaves_out_what_an_earlier_execution_finished(wire: Wire) -> None:
    wire.known = {"1", "3"}

    assert list(a_job(wire, execution=2).remaining([1, 2, 3, 4])) == [2, 4]
    assert list(a_job(wire, execution=1).remaining([1, 2])) == [1, 2]


def test_remaining_takes_its_keys_from_where_it_is_told(wire: Wire) -> None:
    rows = [{"id": 1}, {"id": 2}]

    assert list(a_job(wire).remaining(rows, key=lambda row: row["id"])) == rows
    assert wire.marks == [["1", "2"]]


def test_a_loop_that_is_left_early_has_not_finished_the_item_it_left(wire: Wire) -> None:
    job = a_job(wire)
    for item in job.remaining("abc"):
        if item == "b":
            break
    job.mark_finished()

    assert wire.marks == [["a"]]


def test_a_long_list_is_marked_in_groups(wire: Wire) -> None:
    for _ in a_job(wire).remaining(range(12_000)):
        pass

    assert [len(keys) for keys in wire.marks] == [5000, 5000, 2000]
