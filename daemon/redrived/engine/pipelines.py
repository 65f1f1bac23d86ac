"""The pipelines there are: those of the config and the playbooks, each in its versions."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import TYPE_CHECKING

from redrive.config import Config, ConfigRejected
from redrive.config.values import parse_name
from redrive.errors import NotFound, UsageProblem
from redrive.pipelines import Definition, define, read_playbook
from redrive.pipelines.definition import pinned_name
from redrive.protocol.commands import AddPipeline
from redrive.protocol.rows import PipelineRow
from redrived.engine.definitions import Definitions, nearest
from redrived.store import catalog
from redrived.store.catalog import Entry, Registration, register, register_all
from redrived.store.store import Connection

if TYPE_CHECKING:
    from redrived.engine.engine import Engine

log = logging.getLogger(__name__)


class Pipelines:
    """Read at the start and after every change. Used by the main loop only."""

    def __init__(self, engine: Engine) -> None:
        self.versions: dict[str, Entry] = {}  # those in use, by the names that jobs pin
        self._engine = engine
        self._latest: dict[str, Entry] = {}
        self._known = 0  # versions in the catalog when it was last read
        # One after the other: what is made by one config must not come after another's.
        self._turn = asyncio.Lock()

    async def start(self) -> None:
        config = self._engine.definitions.config
        await self.register(config)
        self._engine.define(Definitions(config, self.versions))
        for words in self.missing(config):
            log.warning("%s", words)

    async def stop(self) -> None:
        """Nothing runs here."""

    async def register(self, config: Config) -> None:
        """Put what a config makes of every pipeline into the catalog, before it is used.

        Playbooks are read again: their steps take queue and policy from the config.
        """
        async with self._turn:
            await self._read()
            await self._engine.store.submit(register_all, self._made_by(config))
            await self._read()

    def _made_by(self, config: Config) -> list[Registration]:
        items = [
            Registration(
                definition=define(name, pipeline, config),
                source=f"[pipelines.{name}] in {config.path or 'the config'}",
            )
            for name, pipeline in config.pipelines.items()
        ]
        for entry in self._latest.values():
            if entry.definition.origin == "playbook" and entry.name not in config.pipelines:
                items.extend(_read_again(entry, config))
        return items

    def missing(self, config: Config) -> Iterator[str]:
        """What is to be said of schedules whose pipeline is neither in a config nor registered."""
        for name, schedule in config.schedules.items():
            if schedule.pipeline is not None and not self._has(schedule.pipeline, config):
                yield (
                    f"schedule {name} starts nothing: there is no pipeline {schedule.pipeline!r}"
                    " yet; `redrive pipeline add FILE` registers a playbook"
                )

    async def add(self, playbook: AddPipeline, by: str) -> Entry:
        """Register a playbook; the same text again makes no new version."""
        if playbook.name is not None:
            _check_name(playbook.name)
        async with self._turn:
            config = self._engine.definitions.config
            source = playbook.source
            # In a thread: it may have a megabyte, and the loop has others to serve.
            read = await asyncio.to_thread(
                read_playbook, source, config, playbook.name, playbook.file
            )
            item = Registration(definition=read.define(config), source=source, by=by)
            entry = await self._engine.store.submit(register, item)
            await self._read()
            self._engine.use(self._engine.definitions.config)
            return entry

    async def look(self) -> None:
        """Take up what other nodes have registered."""
        if await self._engine.store.read(catalog.size) != self._known:
            await self._read()
            self._engine.use(self._engine.definitions.config)

    def knows(self, name: str) -> bool:
        """Whether a run of it can be started now."""
        return self._has(name, self._engine.definitions.config)

    def latest(self, name: str) -> Entry:
        """The version that a run started now gets."""
        if name not in self._startable():
            raise NotFound(f"there is no pipeline {name!r}", hint=nearest(name, self._startable()))
        return self._latest[name]

    async def find(self, name: str, version: int | None = None) -> Entry:
        """Any version that there ever was."""
        found = await self._engine.store.read(catalog.read, name, version)
        if found is not None:
            return found
        if version is not None and (latest := self._latest.get(name)):
            raise NotFound(
                f"pipeline {name!r} has no version {version}",
                hint=f"the latest is {latest.version}",
            )
        raise NotFound(f"there is no pipeline {name!r}", hint=nearest(name, self._latest))

    def rows(self) -> list[PipelineRow]:
        return [
            PipelineRow(
                name=name,
                version=entry.version,
                created_at=entry.created_at,
                steps=[step.name for step in entry.definition.steps],
                origin=entry.definition.origin,
            )
            for name, entry in sorted(self._startable().items())
        ]

    def _startable(self) -> dict[str, Entry]:
        """Not those that the config has dropped: their runs go on, no new ones start."""
        return {name: entry for name, entry in self._latest.items() if self.knows(name)}

    def _has(self, name: str, config: Config) -> bool:
        entry = self._latest.get(name)
        is_playbook = entry is not None and entry.definition.origin == "playbook"
        return is_playbook or name in config.pipelines

    async def _read(self) -> None:
        self._known, entries = await self._engine.store.read(_read_catalog)
        self.versions = {pinned_name(entry.name, entry.version): entry for entry in entries}
        self._latest = {entry.name: entry for entry in entries}


def _read_catalog(connection: Connection) -> tuple[int, list[Entry]]:
    return catalog.size(connection), catalog.in_use(connection)


def _check_name(given: str) -> None:
    """One from beside the text, which is checked with the text's own name in it."""
    try:
        parse_name(given)
    except ValueError as problem:
        raise UsageProblem(f"this is no name of a pipeline: {problem}") from None


def _read_again(entry: Entry, config: Config) -> list[Registration]:
    try:
        definition: Definition = read_playbook(entry.source, config, entry.name).define(config)
    except ConfigRejected as problem:
        text = "playbook %s stays as it was, it does not fit the config: %s"
        log.warning(text, entry.name, problem)
        return []
    return [Registration(definition=definition, source=entry.source)]
