"""The config in force, defaults filled in and secrets left out: TOML as people write it, or JSON
with durations in seconds and sizes in bytes.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime
from functools import lru_cache
from typing import Any, cast

from msgspec import Struct, inspect
from msgspec.structs import asdict, replace

from redrive.config.kinds import mark_name
from redrive.config.lines import Key
from redrive.config.load import Loaded
from redrive.config.problems import part
from redrive.config.sections import Config, Retry, Schedule
from redrive.config.values import Toml, format_duration, format_size
from redrive.config.written import members, tables
from redrive.instants import from_datetime, iso, to_datetime

Styles = dict[str, str | None]


def show(loaded: Loaded) -> str:
    """What `redrive config show` prints."""
    return "\n".join(_Writer(loaded).table(_in_force(loaded.config), (), {})).strip() + "\n"


def show_as_json(loaded: Loaded) -> dict[str, Any]:
    """What `redrive config show --json` prints; `null` lasts forever, what is off is left out."""

    def plain(value: Any, key: Key, styles: Styles) -> Any:
        if key in loaded.masked:
            value = loaded.masked[key]
        match value:
            case Struct():
                return plain(members(value), key, _styles(type(value)))
            case str():
                return loaded.config.redact(value)
            case datetime():
                return iso(from_datetime(value))
            case [*items]:
                return [plain(item, (*key, at), {}) for at, item in enumerate(items)]
            case {**entries}:
                return {
                    name: plain(entry, (*key, name), {})
                    for name, entry in cast(dict[str, Any], entries).items()
                    if entry is not None or styles.get(name) == "lasting"
                }
            case _:
                return value

    schedules = {name: _with_zone(each) for name, each in loaded.config.schedules.items()}
    config = replace(loaded.config, schedules=schedules)
    shown: dict[str, Any] = plain(_in_force(config), (), {})
    return shown


def _with_zone(schedule: Schedule) -> Schedule:
    """A time without a zone is one of the schedule's own."""
    if schedule.at is None:
        return schedule
    from redrive.schedules import Timing  # which itself needs this package

    at = Timing.of(schedule).at
    return schedule if at is None else replace(schedule, at=to_datetime(at))


def _in_force(config: Config) -> dict[str, Any]:
    return tables(replace(config, retry=_policies(config)))


def _policies(config: Config) -> dict[str, Retry]:
    """The policies, with what `default` inherits from the one that is built in."""
    from redrive.policy import resolve  # which itself needs this package

    policy = resolve(True, config.retry)
    default = asdict(policy)
    default["delays"] = list(policy.delays) or None
    if policy.delays:
        default["backoff"] = None
    return {**config.retry, "default": Retry(**default)}


class _Writer:
    def __init__(self, loaded: Loaded) -> None:
        self._redact = loaded.config.redact
        self._masked = loaded.masked

    def table(self, table: dict[str, Any], key: Key, styles: Styles) -> Iterator[str]:
        """The plain keys of a table, then the tables inside it, each under its header."""
        inner: list[tuple[str, Key, Struct]] = []
        for name, value in table.items():
            below = (*key, name)
            match value:
                case Struct():
                    inner.append(("[{}]", below, value))
                case {} if value and all(isinstance(each, Struct) for each in value.values()):
                    inner += [("[{}]", (*below, each), value[each]) for each in value]
                case [Struct(), *_]:
                    inner += [("[[{}]]", (*below, at), each) for at, each in enumerate(value)]
                case None if styles.get(name) != "lasting":
                    pass  # off, and there is no word for it
                case _:
                    yield f"{part(name)} = {self._value(value, below, styles.get(name))}"
        for header, below, section in inner:
            names = ".".join(part(name) for name in below if isinstance(name, str))
            yield from ("", header.format(names))
            yield from self.table(members(section), below, _styles(type(section)))

    def _value(self, value: Toml | None, key: Key, style: str | None) -> str:
        if key in self._masked:
            value = self._masked[key]
        match value:
            case None:
                return '"forever"'
            case float() if style in ("duration", "lasting"):
                return f'"{format_duration(value)}"'
            case int() if style == "size":
                return f'"{format_size(value)}"'
            case str():
                # JSON escapes as TOML does, but leaves alone one character that TOML forbids.
                text = json.dumps(self._redact(value), ensure_ascii=False)
                return text.replace("\x7f", "\\u007f")
            case datetime():
                return value.isoformat()
            case list():
                items = (self._value(item, (*key, at), style) for at, item in enumerate(value))
                return f"[{', '.join(items)}]"
            case dict():
                pairs = (
                    f"{part(name)} = {self._value(value[name], (*key, name), None)}"
                    for name in value
                )
                return f"{{ {', '.join(pairs)} }}" if value else "{}"
            case _:
                return json.dumps(value)


@lru_cache
def _styles(section: type[Struct]) -> Styles:
    """How people write the values of a section, by key."""
    kind = inspect.type_info(section)
    assert isinstance(kind, inspect.StructType)
    return {field.encode_name: _style(field.type) for field in kind.fields}


def _style(kind: inspect.Type) -> str | None:
    match kind:
        case inspect.Metadata():
            return mark_name(kind)
        case inspect.UnionType(types=kinds):
            return next(filter(None, map(_style, kinds)), None)
        case inspect.ListType(item_type=item):
            return _style(item)
        case _:
            return None
