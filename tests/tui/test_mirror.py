from __future__ import annotations

from msgspec.structs import replace

from redrive.clock import SECOND
from redrive.models import Event
from redrive.protocol.announcements import JobVitals, Vitals
from redrive_tui.event_ring import EVENTS_KEPT, Gap
from redrive_tui.mirror import Mirror
from support import incident
from support.clock import FakeClock


def event(seq: int) -> Event:
    return Event(seq=seq, at=incident.NOW, type="action_started", job=1)


def mirror() -> Mirror:
    return Mirror(FakeClock())


def test_the_time_is_the_daemons_even_where_this_clock_is_wrong() -> None:
    clock = FakeClock(now=5 * SECOND)
    seen = Mirror(clock)
    seen.load(incident.status())
    clock.move(2.5)

    assert seen.now() == incident.NOW + round(2.5 * SECOND)


def test_nothing_grows_older_because_nobody_tells() -> None:
    clock = FakeClock()
    seen = Mirror(clock)
    seen.load(incident.status())
    clock.move(1)
    seen.heard()
    clock.move(60)
    assert seen.as_of == incident.NOW + SECOND
    seen.relink("lost")
    assert seen.as_of == incident.NOW + SECOND


def test_events_that_were_missed_are_a_gap_of_known_size() -> None:
    seen = mirror()
    seen.apply([event(10), event(11), event(20)])

    assert list(seen.events) == [event(10), event(11), Gap(missing=8, before=20), event(20)]
    assert (seen.seq, seen.dropped) == (20, 8)


def test_an_event_that_comes_twice_is_there_once() -> None:
    seen = mirror()
    seen.apply([event(10), event(11)])
    seen.apply([event(11), event(12)])

    assert [each.seq for each in seen.events if isinstance(each, Event)] == [10, 11, 12]


def test_a_gap_between_two_batches_is_seen_too() -> None:
    seen = mirror()
    seen.apply([event(1)])
    seen.apply([event(3)])

    assert seen.dropped == 1


def test_only_the_newest_events_are_kept() -> None:
    seen = mirror()
    seen.apply(event(seq) for seq in range(EVENTS_KEPT + 10))

    assert len(seen.events) == EVENTS_KEPT


def test_a_new_daemon_voids_what_was_known() -> None:
    seen = mirror()
    seen.meet(incident.welcome(epoch="e1"))
    seen.load(incident.status())
    seen.apply([event(9_000_000)])

    seen.meet(incident.welcome(epoch="e2"))

    assert (seen.status, seen.seq, len(seen.events)) == (None, 0, 0)


def test_the_same_daemon_again_voids_nothing() -> None:
    seen = mirror()
    seen.meet(incident.welcome())
    seen.load(incident.status())
    seen.meet(incident.welcome())

    assert seen.status is not None


def test_every_change_grows_the_version() -> None:
    seen = mirror()
    versions = [seen.version]
    seen.load(incident.status())
    versions.append(seen.version)
    seen.apply([event(9_000_000)])
    versions.append(seen.version)
    seen.relink("lost", retries=1)
    versions.append(seen.version)

    assert versions == sorted(set(versions))


def test_what_a_job_uses_is_forgotten_when_its_node_names_it_no_more() -> None:
    seen = mirror()
    vitals = Vitals(
        epoch="e1",
        at=incident.NOW,
        node="w1",
        cpu=10.0,
        memory=1,
        jobs=[JobVitals(job=7, heartbeat_at=None, cpu=50.0)],
    )
    seen.feel(vitals)
    assert 7 in seen.vitals["w1"]

    seen.feel(Vitals(epoch="e1", at=incident.NOW, node="w1", cpu=0.0, memory=1, jobs=[]))
    assert seen.vitals["w1"] == {}


def test_nodes_and_queues_that_are_gone_are_forgotten() -> None:
    seen = mirror()
    status = incident.status()
    seen.load(status)
    left = status.nodes[0]
    for node in status.nodes:
        told = Vitals(epoch="e1", at=incident.NOW, node=node.name, cpu=0.0, memory=1, jobs=[])
        seen.feel(told)
    assert len(seen.vitals) == len(status.nodes) > 1

    seen.load(replace(status, nodes=[left], queues=status.queues[:1]))

    assert set(seen.vitals) == set(seen.cpu) == {left.name}
    assert set(seen.throughput) == {status.queues[0].name}
