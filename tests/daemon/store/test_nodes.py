from __future__ import annotations

from collections.abc import Sequence

from redrive.clock import SECOND
from redrived.store import nodes
from redrived.store.database import Database
from redrived.store.leaders import is_term, lead, resign
from redrived.store.nodes import Missed, NodeBeat, NodeFacts
from redrived.store.unit import Unit
from support.clock import FakeClock
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
    ground.do(nodes.leave, None)
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
    found: list[Missed] = []
    for _ in range(20):
        clock.move(1)
        one.do(nodes.beat, a_beat())
        found += one.do(nodes.look_for_missing, None)
    assert found == [Missed("two", "late"), Missed("two", "lost")]
    assert told(one)[2:] == [("node_late", "two"), ("node_lost", "two")]
    assert two.do(nodes.beat, a_beat()) == "lost"
    assert [row.state for row in one.ask(nodes.rows)] == ["up", "up"]


async def test_a_node_that_stopped_is_not_missed(database: Database, clock: FakeClock) -> None:
    one, two = two_nodes(database, clock)
    two.do(nodes.leave, None)
    clock.move(60)
    assert one.do(nodes.look_for_missing, None) == []


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
