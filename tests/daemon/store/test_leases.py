"""The order in which jobs are leased, and the limits that hold."""

from __future__ import annotations

import pytest

from redrive.lifecycle import JobState
from redrived.store.beats import Beat, beat
from redrived.store.enqueue import NewJob
from redrived.store.give_back import GivenBack, give_back
from redrived.store.picking import Berth, QueueRules, Room, TaskRules
from redrived.store.promote import KeyLimit, bring_forward, promote
from support.clock import FakeClock
from support.ground import Ground


def job(task: str = "work", queue: str = "default", **more: object) -> NewJob:
    return NewJob(task=task, queue=queue, **more)  # type: ignore[arg-type]


def test_a_lease_counts_the_attempt_and_takes_a_new_lease_number(ground: Ground) -> None:
    [placed] = ground.add()
    [held] = ground.take()

    row = ground.job(placed.id)
    assert (row.state, row.attempts, row.lease, row.node) == (JobState.LEASED, 1, 1, "n1")
    assert (held.lease, held.attempt, held.leased_from) == (1, 1, "queued")
    assert row.started_at == row.heartbeat_at == ground.clock.now()
    assert ground.told(placed.id) == ["step_started", "action_started"]
    assert ground.counts() == {"leased": 1}


def test_an_attempt_begins_with_no_progress_and_no_metrics_of_the_one_before(
    ground: Ground,
) -> None:
    [placed] = ground.add()
    [held] = ground.take()
    ground.do(beat, Beat(held.id, held.lease, ground.clock.now(), '{"done": 1}', '{"rows": 2}'))
    ground.fail(held, retry_in=0)
    assert ground.job(placed.id).metrics == {"rows": 2}
    ground.take()

    row = ground.job(placed.id)
    assert (row.progress, row.metrics) == (None, None)


def test_a_life_starts_with_its_first_attempt(ground: Ground, clock: FakeClock) -> None:
    ground.add(NewJob(task="work", queue="default", max_attempts=3))
    clock.move(100)
    began = clock.now()
    [first] = ground.take()
    ground.fail(first, retry_in=5)
    clock.move(5)
    ground.do(promote, 100)
    [second] = ground.take()
    assert (first.life_started_at, second.life_started_at) == (began, began)


def test_jobs_go_by_queue_then_operation_then_priority_then_due_time_then_id(
    ground: Ground,
) -> None:
    urgent, low = QueueRules(priority=100), QueueRules(priority=10)
    placed = ground.add(
        job(queue="bulk", rank=1),
        job(queue="bulk", rank=0),
        job(queue="bulk", rank=0, priority=5),
        job(queue="manual"),
        job(queue="bulk", rank=0),
    )
    a, b, c, d, e = (place.id for place in placed)

    order = []
    for _ in placed:
        leased = ground.lease(1, queues={"manual": urgent, "bulk": low})
        order += [held.id for held in leased.picked.jobs()]

    assert order == [d, c, b, e, a]


def test_lanes_of_one_queue_are_merged_by_that_order(ground: Ground) -> None:
    ids = [p.id for p in ground.add(*(job(task) for task in ("work", "other", "work", "other")))]

    assert [held.id for held in ground.take(3)] == ids[:3]


def test_a_retry_is_never_leased_before_it_is_available(ground: Ground, clock: FakeClock) -> None:
    [placed] = ground.add()
    [held] = ground.take()
    ground.fail(held, retry_in=60)

    assert ground.take() == []
    clock.move(59.999)
    assert ground.do(promote, 100).n == 0
    clock.move(0.001)
    assert ground.do(promote, 100).n == 1
    [again] = ground.take()
    assert (again.id, again.attempt, again.leased_from) == (placed.id, 2, "retry")


def test_the_promoter_says_when_the_next_job_falls_due(ground: Ground, clock: FakeClock) -> None:
    now = clock.now()
    ground.add(job(available_at=now + 5_000_000), job(available_at=now + 3_000_000))

    assert ground.do(promote, 100).next_due == now + 3_000_000
    assert ground.landed[0].sleeps_until == now + 3_000_000


def test_reserved_slots_are_left_to_their_queue(ground: Ground) -> None:
    queues = {"manual": QueueRules(priority=100, reserved=1), "bulk": QueueRules(priority=10)}
    ground.add(*(job(queue="bulk") for _ in range(3)))

    assert len(list(ground.lease(2, queues=queues).picked.jobs())) == 1
    ground.add(job(queue="manual"))
    [manual] = ground.lease(1, queues=queues, used={"bulk": 1}).picked.jobs()
    assert manual.queue == "manual"


def test_a_queue_never_runs_more_than_its_concurrency(ground: Ground) -> None:
    queues = {"bulk": QueueRules(concurrency=2)}
    ground.add(*(job(queue="bulk") for _ in range(5)))

    first = list(ground.lease(4, queues=queues).picked.jobs())
    assert len(first) == 2
    assert not list(ground.lease(4, queues=queues).picked.jobs())
    ground.finish(first[0])
    assert len(list(ground.lease(4, queues=queues).picked.jobs())) == 1


def test_a_task_never_runs_more_than_its_concurrency(ground: Ground) -> None:
    tasks = {"work": TaskRules(concurrency=1), "other": TaskRules()}
    ground.add(job("work"), job("work"), job("other"))

    assert [held.task for held in ground.lease(5, tasks=tasks).picked.jobs()] == ["work", "other"]
    assert not list(ground.lease(5, tasks=tasks).picked.jobs())


def test_a_full_key_lets_other_keys_pass_and_its_own_come_forward_in_turn(ground: Ground) -> None:
    tasks = {"work": TaskRules(keyed=True)}
    ids = [p.id for p in ground.add(*(job(limit_key=f"work/{key}") for key in "aaab"))]

    leased = ground.lease(5, tasks=tasks)
    assert [held.id for held in leased.picked.jobs()] == [ids[0], ids[3]]
    assert leased.again
    assert ground.waits(ids[1]) == ground.waits(ids[2]) == "key"
    assert not list(ground.lease(5, tasks=tasks).picked.jobs())

    ground.finish(next(iter(leased.picked.jobs())))
    assert [held.id for held in ground.lease(5, tasks=tasks).picked.jobs()] == [ids[1]]


@pytest.mark.parametrize(("most", "expected"), [(1, 2), (3, 6), (None, 8)])
def test_of_each_key_as_many_come_forward_as_its_limit_allows_now(
    ground: Ground, most: int | None, expected: int
) -> None:
    one = {"work": TaskRules(keyed=True)}
    ground.add(*(job(limit_key=f"work/{key}") for key in "aaaaabbbbb"))
    while ground.lease(5, tasks=one).again:
        pass
    assert ground.do(bring_forward, [KeyLimit("other", None)]) == 0
    assert ground.do(bring_forward, [KeyLimit("work", most)]) == expected
    ready = {"work": TaskRules(keyed=True, concurrency=(most or 5) + 1)}
    assert len(list(ground.lease(20, tasks=ready).picked.jobs())) == expected


def test_a_rate_holds_whatever_the_keys_of_its_jobs(ground: Ground) -> None:
    tasks = {"work": TaskRules(keyed=True, concurrency=2, rate=(3, 60_000_000))}
    ids = [p.id for p in ground.add(*(job(limit_key=f"work/{key}") for key in "aaabbb"))]

    leased = ground.lease(10, tasks=tasks)
    while leased.again:
        leased = ground.lease(10, tasks=tasks)

    assert [id for id in ids if ground.job(id).state is JobState.LEASED] == [ids[0], ids[1], ids[3]]


def test_the_rate_of_a_queue_is_shared_by_its_tasks(ground: Ground) -> None:
    tasks = {"work": TaskRules(), "play": TaskRules()}
    queues = {"default": QueueRules(rate=(3, 60_000_000))}
    ids = [p.id for p in ground.add(*(job(task) for task in ["work", "work", "play", "play"]))]

    leased = ground.lease(10, tasks=tasks, queues=queues)

    assert [held.id for held in leased.picked.jobs()] == ids[:3]


def test_a_rate_holds_over_its_window_and_says_when_it_allows_more(
    ground: Ground, clock: FakeClock
) -> None:
    tasks = {"work": TaskRules(rate=(2, 60_000_000))}
    ground.add(*(job() for _ in range(5)))

    first = ground.lease(5, tasks=tasks)
    assert len(list(first.picked.jobs())) == 2
    clock.move(20)
    second = ground.lease(5, tasks=tasks)
    assert not list(second.picked.jobs())
    assert second.wake_at == first.at + 60_000_000
    clock.move(40)
    assert len(list(ground.lease(5, tasks=tasks).picked.jobs())) == 2


def test_a_paused_queue_and_a_task_without_rules_lease_nothing(ground: Ground) -> None:
    ground.add(job(), job("stranger"))

    paused = {"default": QueueRules(paused=True)}
    assert not list(ground.lease(5, queues=paused).picked.jobs())
    assert [held.task for held in ground.lease(5).picked.jobs()] == ["work"]


def test_a_worker_is_filled_up_to_a_hand_and_only_the_first_begins(ground: Ground) -> None:
    ground.add(*(job() for _ in range(10)))
    tasks = {"work": TaskRules(pool="p", hand=4)}

    leased = ground.do_lease(Room(slots=1, berths={"p": [Berth(7)]}, tasks=tasks))

    [berth] = leased.picked.berths
    assert len(berth.jobs) == 4
    first, *others = berth.jobs
    assert leased.picked.begun == {first.id}
    assert ground.job(first.id).started_at is not None
    assert all(ground.job(other.id).started_at is None for other in others)


def test_a_job_in_hand_goes_back_free_of_charge(ground: Ground) -> None:
    [placed] = ground.add()
    [held] = ground.hand(0, 1)
    row = GivenBack(held.id, held.lease, held.queue, held.task, held.leased_from)
    ground.do(give_back, [row])

    after = ground.job(placed.id)
    assert (after.state, after.attempts, after.lease) == (JobState.QUEUED, 0, 1)
    assert ground.told(placed.id) == ["step_started"]
    assert ground.take()[0].lease == 2


SHORT_AND_LONG = {
    "short": TaskRules(pool="p", hand=100),
    "long": TaskRules(pool="p", hand=1),
    "call": TaskRules(),
}


@pytest.mark.parametrize("first", ["long", "call"])
@pytest.mark.parametrize("queue", ["urgent", "default"])
def test_busy_hands_are_filled_no_further_once_something_before_waits_for_room(
    ground: Ground, first: str, queue: str
) -> None:
    """Else short jobs would follow each other in every hand, and none would ever become free."""
    ground.add(NewJob(task=first, queue=queue), *(job("short") for _ in range(5)))
    queues = {"urgent": QueueRules(priority=100)}

    def leased(slots: int, *berths: Berth) -> list[str]:
        room = Room(slots=slots, berths={"p": berths}, tasks=SHORT_AND_LONG, queues=queues)
        return [held.task for held in ground.do_lease(room).picked.jobs()]

    assert leased(0, Berth(1, share=0.9, empty=False)) == []
    assert leased(1, Berth(1)) == [first]
    assert leased(0, Berth(1, share=0.9, empty=False)) == ["short"] * 5


def test_busy_hands_are_filled_beside_what_waits_for_another_pool_or_at_its_limit(
    ground: Ground,
) -> None:
    urgent = {"urgent": QueueRules(priority=100)}
    ground.add(NewJob(task="elsewhere", queue="urgent"), NewJob(task="one", queue="urgent"))
    ground.add(*(job("short") for _ in range(5)))
    tasks = {
        **SHORT_AND_LONG,
        "elsewhere": TaskRules(pool="q", hand=1),
        "one": TaskRules(pool="p", hand=1, concurrency=0),
    }
    busy = {"p": [Berth(1, share=0.9, empty=False)], "q": []}
    room = Room(slots=1, berths=busy, tasks=tasks, queues=urgent)
    assert [held.task for held in ground.do_lease(room).picked.jobs()] == ["short"] * 5


def test_hands_are_filled_one_after_the_other_as_far_as_each_has_room(ground: Ground) -> None:
    ground.add(*(job() for _ in range(20)))
    tasks = {"work": TaskRules(pool="p", hand=4)}
    berths = [
        Berth(1, share=0.5, empty=False),
        Berth(2, share=0.1, empty=False),
        Berth(3),
        Berth(4),
    ]

    leased = ground.do_lease(Room(slots=1, berths={"p": berths}, tasks=tasks))

    filled = {berth.worker: [held.id for held in berth.jobs] for berth in leased.picked.berths}
    assert filled == {1: [1, 2], 3: [3, 4, 5, 6]}  # for the last there is no slot
    assert leased.picked.begun == {3}
    assert not leased.is_all
