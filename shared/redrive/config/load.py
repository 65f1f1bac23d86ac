"""Reads config.toml whole, or says everything that is wrong with it.

The steps, in order: TOML, the variables of the environment, the structs, the checks between
them. The daemon reads the whole file with `load`, the clients only their tables with
`load_client`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from redrive.config import environment
from redrive.config.checks import check_all, check_client
from redrive.config.document import Document, read_document
from redrive.config.environment import Environment
from redrive.config.lines import Key
from redrive.config.problems import ConfigRejected, Enough, Problems
from redrive.config.reader import Reader
from redrive.config.sections import ClientTables, Config, ManualRetry, Pool, Queue, Tables
from redrive.config.values import Toml


class Loaded(Struct, frozen=True):
    """A config that can be used, and what must not be shown of it."""

    config: Config
    secrets: frozenset[str]
    masked: dict[Key, str]  # the values that came from the environment, as they may be shown

    def redact(self, text: str) -> str:
        return environment.redact(text, self.secrets)


def load(path: str | Path, environ: Mapping[str, str] = os.environ) -> Loaded:
    """The whole config; `ConfigRejected` names everything that is wrong with it."""
    path = Path(path)
    return _judge(path, read_document(path, refuse_shared=True), environ, _whole)


def load_client(path: str | Path, environ: Mapping[str, str] = os.environ) -> Loaded:
    """Only what clients need, so that a mistake elsewhere never blocks `status` or `kill`."""
    path = Path(path)
    values, lines = read_document(path, refuse_shared=False)
    wanted = {name: values[name] for name in ClientTables.__struct_fields__ if name in values}
    return _judge(path, Document(wanted, lines), environ, _client)


_Read = Callable[[Reader, dict[str, Toml], Problems], Config]


def _judge(path: Path, document: Document, environ: Mapping[str, str], read: _Read) -> Loaded:
    problems = Problems(str(path), document.lines)
    variables = Environment(environ, problems)
    folder = path.absolute().parent
    config = Config()
    try:
        values = variables.fill_in(document.values)
        reader = Reader(folder, variables.masked, problems)
        config = read(reader, values, problems)
    except Enough:
        pass  # what was found is told below
    secrets = frozenset(variables.secrets | environment.passwords(config.store.url))
    if found := problems.in_file_order():
        raise ConfigRejected(
            [replace(each, text=environment.redact(each.text, secrets)) for each in found]
        )
    config = replace(config, folder=str(folder), path=str(path.absolute()))
    return Loaded(config, secrets, variables.masked)


def _whole(reader: Reader, values: dict[str, Toml], problems: Problems) -> Config:
    manual: Toml = {}
    if isinstance(retry := values.get("retry"), dict):
        # It bounds what people do; the tables beside it are policies, which tasks name.
        manual = retry.pop("manual", {})
    manual_retry = reader.section(ManualRetry, manual, ("retry", "manual"))
    tables = reader.section(Tables, values)
    check_all(tables, problems)
    config = Config(**asdict(tables), manual_retry=manual_retry)
    # These two exist without being written.
    queues = {"default": Queue(), **tables.queues}
    return replace(config, queues=queues, pools={"default": Pool(), **tables.pools})


def _client(reader: Reader, values: dict[str, Toml], problems: Problems) -> Config:
    tables = reader.section(ClientTables, values)
    check_client(tables, problems)
    return Config(**asdict(tables))
