from __future__ import annotations

from collections.abc import Iterator, Sequence

import pytest

from redrive.clock import SECOND
from redrive.errors import AlreadyRunning
from redrived.store import nodes
from redrived.store.database import Database
from redrived.store.leaders import is_term, lead, resign
from redrived.store.nodes import LOST, Missed, NodeBeat, NodeFacts
from redrived.store.unit import Unit
from support.clock import FakeClock
from support.databases import postgresql_url
from support.ground import Ground

LENGTH = 15 * SECOND


def a_beat(**more: object) -> NodeBeat:
    fields = {"state": "up", "started_at": 1, "version": "1", "slots": 8, "facts": NodeFacts(pid=1)}
    return NodeBeat(**{**fields, **more})  # type: ignore[arg-type]


def two_nodes(database: Database, clock: FakeClock) -> tuple[Ground, Ground]:
    one, two = Ground(database, clock, "one"), Ground(database, clock, "two")
    one.do(nodes.arrive, a_beat())
    two.do(nodes.arrive, a_beat())
    return one, two


def told(ground: Ground) -> list[tuple[str, str]]:
    return [(event.type, event.data["node"]) for event in ground.events()]


async def test_a_node_tells_when_it_comes_and_goes(ground: Ground) -> None:
    assert ground.do(nodes.arrive, a_beat()) is None
    assert ground.do(nodes.beat, a_beat(facts=NodeFacts(pid=1, busy=3))) == "up"
    (row,) = ground.ask(nodes.rows)
    assert (row.name, row.state, row.busy, row.leader) == ("n1", "up", 3, False)
    ground.do(nodes.leave, "")
    assert ground.do(nodes.arrive, a_beat()) == "stopped"
    assert told(ground) == [("node_started", "n1"), ("node_stopped", "n1"), ("node_started", "n1")]


async def test_a_start_after_a_crash_says_so(ground: Ground) -> None:
    ground.do(nodes.arrive, a_beat())
    ground.do(nodes.arrive, a_beat())
    assert [event.data.get("after") for event in ground.events()] == [None, "up"]


async def test_a_silent_node_is_late_then_lost_and_each_is_told_once(
    database: Database, clock: FakeClock
) -> None:
    one, two = two_nodes(database, clock)
    term = one.do(lead, LENGTH)
    assert term is not None
    found: list[Missed] = []
    for _ in range(20):
        clock.move(1)
        one.do(nodes.beat, a_beat())
        found += one.do(nodes.look_for_missing, term)
    assert found == [Missed("two", "late"), Missed("two", "lost")]
    assert told(one)[2:] == [("node_late", "two"), ("node_lost", "two")]
    assert two.do(nodes.beat, a_beat()) == "lost"
    assert [row.state for row in one.ask(nodes.rows)] == ["up", "up"]


async def test_a_node_that_stopped_is_not_missed(database: Database, clock: FakeClock) -> None:
    one, two = two_nodes(database, clock)
    two.do(nodes.leave, "")
    term = one.do(lead, LENGTH)
    assert term is not None
    clock.move(60)
    assert one.do(nodes.look_for_missing, term) == []


async def test_who_led_accuses_nobody_any_more(database: Database, clock: FakeClock) -> None:
    one, two = two_nodes(database, clock)
    Ground(database, clock, "three").do(nodes.arrive, a_beat())
    term = one.do(lead, LENGTH)
    assert term is not None
    clock.move(60)
    two.do(lead, LENGTH)
    assert one.do(nodes.look_for_missing, term) == []


@pytest.fixture
def rivals(clock: FakeClock) -> Iterator[tuple[Ground, Ground]]:
    """Two nodes of one name, each with a state directory of its own."""
    url = postgresql_url()
    made = Ground(Database(url), clock, "n1"), Ground(Database(url), clock, "n1")
    yield made
    for each in made:
        each.database.close()


def at_home(home: str, pid: int = 1) -> NodeBeat:
    return a_beat(facts=NodeFacts(pid=pid, home=home))


async def test_the_name_of_a_living_node_is_its_own(rivals: tuple[Ground, Ground]) -> None:
    one, two = rivals
    one.do(nodes.arrive, at_home("one", pid=7))
    with pytest.raises(AlreadyRunning) as refused:
        two.do(nodes.arrive, at_home("two"))
    assert refused.value.message == "a node named n1 is alive (pid 7, last beat 0 s ago)"
    assert one.do(nodes.arrive, at_home("one")) == "up"  # after a crash, in its own directory
    one.do(nodes.leave, "one")
    assert two.do(nodes.arrive, at_home("two")) == "stopped"


async def test_the_name_of_a_silent_node_can_be_taken_and_is_not_taken_back(
    rivals: tuple[Ground, Ground], clock: FakeClock
) -> None:
    one, two = rivals
    one.do(nodes.arrive, at_home("one"))
    one.do(fall_silent, LOST)
    two.do(nodes.arrive, at_home("two"))
    with pytest.raises(AlreadyRunning, match="another node took the name n1"):
        one.do(nodes.beat, at_home("one"))
    one.do(nodes.leave, "one")
    assert [row.state for row in two.ask(nodes.rows)] == ["up"]


def fall_silent(unit: Unit, spans: Sequence[int]) -> list[None]:
    for span in spans:
        unit.execute("UPDATE nodes SET beat_at = beat_at - :span", span=span)
    return [None] * len(spans)


async def test_one_node_leads_until_it_renews_no_more(ground: Ground, clock: FakeClock) -> None:
    other = Ground(ground.database, clock, "other")
    assert ground.do(lead, LENGTH) == 1
    if not ground.database.is_sqlite:
        assert other.do(lead, LENGTH) is None
    clock.move(16)
    assert other.do(lead, LENGTH) == 2
    assert other.do(is_term_now, 2)
    assert not ground.do(is_term_now, 1)


async def test_a_node_that_resigns_is_followed_at_once(ground: Ground, clock: FakeClock) -> None:
    other = Ground(ground.database, clock, "other")
    ground.do(lead, LENGTH)
    ground.do(resign, None)
    assert other.do(lead, LENGTH) == 2


async def test_the_one_that_leads_keeps_its_term(ground: Ground, clock: FakeClock) -> None:
    terms = []
    for _ in range(5):
        terms.append(ground.do(lead, LENGTH))
        clock.move(5)
    assert terms == [1] * 5


def is_term_now(unit: Unit, terms: Sequence[int]) -> list[bool]:
    return [is_term(unit, term) for term in terms]
