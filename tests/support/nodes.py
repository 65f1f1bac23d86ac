"""Several real daemons on one embedded PostgreSQL database, each in folders of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Generator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from sqlalchemy import text

from redrive.models import Event
from redrive.protocol.queries import ListEvents, ListNodes
from redrived.store.database import Database
from support import invariants
from support.clock import FakeClock
from support.daemon import eventually
from support.databases import postgresql_url
from support.ground import Ground
from support.trial import Trial, trial

QUICK = Path(__file__).with_name("quick_redrived.py")

BASE = """
[daemon]
name = "{name}"
state_dir = "./state"
runtime_dir = "./run"
concurrency = 2
shutdown_grace = "1s"
[store]
url = "{url}"
"""


class Nodes:
    """Daemons by name; where it does not matter which of them is asked, the first is."""

    def __init__(self, folder: Path, url: str, trials: dict[str, Trial]) -> None:
        self.folder = folder
        self.url = url
        self.trials = trials

    def __getitem__(self, name: str) -> Trial:
        return self.trials[name]

    def start(self) -> None:
        for each in self.trials.values():
            each.start(ready=False)
        for each in self.trials.values():
            each.wait_ready()

    def wrote(self, name: str) -> list[str]:
        """The lines that jobs have appended to a file, on whichever node."""
        path = self.folder / name
        return path.read_text().split() if path.exists() else []

    def ran_on(self, events: list[Event]) -> Counter[str]:
        """How many attempts each node has begun."""
        return Counter(e.data["node"] for e in events if e.type == "action_started")

    def all_events(self, trial: Trial) -> list[Event]:
        found: list[Event] = []
        while page := trial.ask.ask(ListEvents(after=len(found), limit=10_000)).events:
            found += page
        return found

    def until_leader(self) -> Trial:
        """The node that leads, once one does that is up."""

        def leader() -> Trial | None:
            for each in self.trials.values():
                if is_up(each):
                    rows = each.ask.ask(ListNodes()).nodes
                    leading = [self.trials[row.name] for row in rows if row.leader]
                    return next((each for each in leading if is_up(each)), None)
            return None

        found = eventually(leader, "a node leads")
        assert found is not None
        return found

    def check(self) -> None:
        """What holds of the store whatever happened to it: no gaps, no node in another's way."""
        for each in self.trials.values():
            assert "deadlock" not in each.log.read_text()
        database = Database(self.url)
        try:
            ground = Ground(database, FakeClock())
            invariants.check(ground)
            with database.readers.connect() as connection:
                seqs = list(
                    connection.execute(text("SELECT seq FROM events ORDER BY seq")).scalars()
                )
            assert seqs == list(range(1, len(seqs) + 1))
        finally:
            database.close()


def is_up(trial: Trial) -> bool:
    return trial.process is not None and trial.process.poll() is None


@contextmanager
def nodes(
    folder: Path, config: str, handlers: str = "", names: str = "ab", url: str | None = None
) -> Generator[Nodes]:
    url = url or postgresql_url()
    with ExitStack() as stack:
        trials: dict[str, Trial] = {}
        for name in names:
            (folder / name).mkdir()
            base = BASE.format(name=name, url=url)
            each = stack.enter_context(trial(folder / name, config, handlers, base))
            each.program = (str(QUICK),)
            trials[name] = each
        yield Nodes(folder, url, trials)
