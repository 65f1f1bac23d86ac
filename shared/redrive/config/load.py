"""Reads config.toml whole, or says everything that is wrong with it.

The steps, in order: TOML, the variables of the environment, the structs, the checks between
them. The daemon reads the whole file with `load`, the clients only their tables with
`load_client`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import asdict, replace

from redrive.config import environment
from redrive.config.checks import check_all, check_client
from redrive.config.document import Document, read_document, read_tables
from redrive.config.environment import Environment
from redrive.config.lines import Key
from redrive.config.places import check_places
from redrive.config.problems import ConfigRejected, Enough, Problem, Problems
from redrive.config.reader import Reader
from redrive.config.sections import (
    Bus,
    ClientTables,
    Config,
    Daemon,
    ManualRetry,
    Pool,
    Queue,
    Tables,
)
from redrive.config.values import Toml

# What of [daemon] and [bus] says which daemon is meant.
_ADDRESSES = ("state_dir", "runtime_dir", "events", "query", "control", "curve")


class Loaded(Struct, frozen=True):
    """A config that can be used, and what must not be shown of it."""

    config: Config
    masked: dict[Key, str]  # the values that came from the environment, as they may be shown
    problems: tuple[Problem, ...] = ()  # what is wrong with it and does not keep it from use


def load(
    path: str | Path, environ: Mapping[str, str] = os.environ, *, look_around: bool = False
) -> Loaded:
    """The whole config; `ConfigRejected` names everything that is wrong with it.

    With `look_around`, the `problems` of what is returned are what it names and is not there.
    """
    path = Path(path)
    document = read_document(path)
    loaded = _judge(path, document, environ, _whole)
    if not look_around:
        return loaded
    problems = Problems(str(path), document.lines)
    with suppress(Enough):
        check_places(loaded.config, environ, problems)
    return replace(loaded, problems=tuple(_redacted(problems, loaded.config.secrets)))


def load_client(path: str | Path, environ: Mapping[str, str] = os.environ) -> Loaded:
    """Only what clients need, so that a mistake elsewhere never blocks `status` or `kill`.

    Refused is what may lead to another daemon than the one that is meant, and nothing else.
    """
    path = Path(path)
    try:
        document = read_tables(path, ClientTables.__struct_fields__)
        return _judge(path, document, environ, _client, may_be_wrong=_names_no_daemon)
    except ConfigRejected as refused:
        refused.hint = (
            "a daemon that runs is reached with `--config FILE`, a file with nothing but its"
            " [daemon] and [bus]"
        )
        raise


_Read = Callable[[Reader, dict[str, Toml], Problems], Config]


def _nothing(_: Problem) -> bool:
    return False


def _judge(
    path: Path,
    document: Document,
    environ: Mapping[str, str],
    read: _Read,
    may_be_wrong: Callable[[Problem], bool] = _nothing,
) -> Loaded:
    problems = Problems(str(path), document.lines)
    variables = Environment(environ, problems)
    folder = path.absolute().parent
    config = Config()
    try:
        values = variables.fill_in(document.values)
        reader = Reader(folder, variables.masked, problems)
        config = read(reader, values, problems)
    except Enough:  # and little of it has been read
        may_be_wrong = _nothing
    secrets = frozenset(variables.secrets | environment.passwords(config.store.url))
    found = _redacted(problems, secrets)
    if not all(map(may_be_wrong, found)):
        raise ConfigRejected(found)
    config = replace(config, folder=str(folder), path=str(path.absolute()), secrets=secrets)
    return Loaded(config, variables.masked, (*document.broken, *found))


def _redacted(problems: Problems, secrets: Collection[str]) -> list[Problem]:
    return [
        replace(each, text=environment.redact(each.text, secrets))
        for each in problems.in_file_order()
    ]


def _names_no_daemon(problem: Problem) -> bool:
    """Whether it is about a key, and one we know, that leads to no other daemon."""
    table, _, key = problem.key.partition(".")
    known = {"daemon": Daemon, "bus": Bus}.get(table)
    return table == "console" or (
        known is not None and key in known.__struct_fields__ and key not in _ADDRESSES
    )


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
