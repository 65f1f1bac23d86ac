"""What keeps the demo busy: runs and jobs of every kind, each at a pace of its own."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from importlib.resources import files
from itertools import count

from redrive.blocking import Client
from redrive.config import Config
from redrive.demo import background
from redrive.errors import RedriveError
from redrive.protocol.commands import AddPipeline, RunOrder

Feed = Callable[[Client, int], object]

ADDRESS = "http://127.0.0.1:8399"  # of the service, as it stands in the files
TICK = 0.25  # seconds
BATCH = 40  # items
CITIES = ("Oslo", "Lima", "Pune", "Kyiv", "Accra", "Quito")


def _ingest(client: Client, number: int) -> None:
    client.start("ingest", {"upload": f"site-{number}", "files": random.randint(10, 40)})


def _document(client: Client, number: int) -> None:
    client.start("document", {"document": f"letter-{number}.txt"})


def _report(client: Client, number: int) -> None:
    client.start("report", {"day": f"day-{number}"})


def _batch(client: Client, number: int) -> None:
    items = range(number * BATCH, (number + 1) * BATCH)
    orders = [
        RunOrder(args={"item": str(item)}, key=str(item), batch=f"campaign-{number}")
        for item in items
    ]
    client.start_many("campaign", orders)


def _single(client: Client, number: int) -> None:
    client.start("single", {"item": f"s{number}"})


def _charge(client: Client, number: int) -> None:
    client.enqueue("charge", {"order": number})


def _weather(client: Client, number: int) -> None:
    client.enqueue("weather", {"city": CITIES[number % len(CITIES)]})


# With the seconds from one to the next, on average.
FEEDS: tuple[tuple[float, Feed], ...] = (
    (7.0, _ingest),
    (6.0, _document),
    (9.0, _report),
    (80.0, _batch),
    (12.0, _single),
    (1.5, _charge),
    (1.0, _weather),
)


@contextmanager
def running(config: Config, service: str) -> Generator[None]:
    """Feed the daemon of this config until the block ends."""
    stop = threading.Event()
    with Client(config, name="redrive demo") as client:
        client.ask(AddPipeline(source=_text("report.yaml", service)))
        feeding = background.start("demo workload", lambda: _feed(client, stop))
        try:
            yield
        finally:
            stop.set()
            feeding.join()


def config_text(service: str) -> str:
    """The config of the demo, with the address its service really has."""
    return _text("config.toml", service)


def _text(name: str, service: str) -> str:
    return files("redrive.demo").joinpath(name).read_text().replace(ADDRESS, service)


def _feed(client: Client, stop: threading.Event) -> None:
    numbers = [count() for _ in FEEDS]
    is_first = True
    while is_first or not stop.wait(TICK):
        for (every, feed), number in zip(FEEDS, numbers, strict=True):
            # Looked at before each: a daemon that does not answer costs a timeout every time.
            if not stop.is_set() and (is_first or random.random() < TICK / every):
                _try(feed, client, next(number))
        is_first = False


def _try(feed: Feed, client: Client, number: int) -> None:
    try:
        feed(client, number)
    except RedriveError:
        pass  # whoever plays with the demo may stop its daemon, too
