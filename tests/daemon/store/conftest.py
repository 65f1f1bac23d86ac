from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from redrived.store.database import Database
from support.clock import FakeClock
from support.databases import database as make_database
from support.ground import Ground
from support.open_store import OpenStore, url_of
from support.pair import Pair


@pytest.fixture(params=["sqlite", "postgresql"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Database]:
    with make_database(request.param, tmp_path) as made:
        yield made


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def ground(database: Database, clock: FakeClock) -> Ground:
    return Ground(database, clock)


@pytest.fixture
def pair() -> Iterator[Pair]:
    made = Pair()
    yield made
    made.close()


@pytest.fixture
async def opened(database: Database, clock: FakeClock) -> AsyncIterator[OpenStore]:
    opened = await OpenStore(url_of(database), clock).open()
    opened.be_impatient()
    yield opened
    await opened.store.close()
