"""A YAML text as values and the lines they stand on, without aliases.

A playbook is data from outside: aliases, by which a short text can stand for gigabytes, are
refused, and so is what nests without end.
"""

from __future__ import annotations

from typing import Any, cast

import yaml

from redrive import nesting
from redrive.config.lines import Key

LARGEST = 1 << 20  # characters


class YamlProblem(ValueError):
    """The text cannot be read; `line` says where."""

    def __init__(self, message: str, line: int = 1) -> None:
        super().__init__(message)
        self.line = line


class YamlText:
    """`values` is what the text holds; indexing with a key gives its line."""

    def __init__(self, text: str) -> None:
        self._written: dict[Key, int] = {}
        self.values: Any = None
        if len(text) > LARGEST:
            raise YamlProblem(f"the text has {len(text)} characters, expected at most {LARGEST}")
        try:
            self.values = self._read(text)
        except yaml.MarkedYAMLError as broken:
            mark = broken.problem_mark
            words = broken.problem or "it cannot be read"
            raise YamlProblem(f"not YAML: {words}", mark.line + 1 if mark else 1) from None
        except (yaml.YAMLError, ValueError) as broken:
            if isinstance(broken, YamlProblem):
                raise
            raise YamlProblem(f"not YAML: {broken}") from None

    def __getitem__(self, key: Key, /) -> int:
        while key:
            if key in self._written:
                return self._written[key]
            key = key[:-1]
        return 1

    def _read(self, text: str) -> Any:
        levels = 0
        for event in yaml.parse(text, Loader=yaml.SafeLoader):
            line = event.start_mark.line + 1 if event.start_mark else 1
            if isinstance(event, yaml.AliasEvent):
                raise YamlProblem(f"`*{event.anchor}` is an alias, expected the value itself", line)
            levels += isinstance(event, yaml.CollectionStartEvent)
            levels -= isinstance(event, yaml.CollectionEndEvent)
            if levels > nesting.MOST:
                raise YamlProblem("nested too deeply, expected a playbook", line)
        loader = yaml.SafeLoader(text)
        try:
            node = loader.get_single_node()
            return None if node is None else self._value(loader, node, ())
        finally:
            loader.dispose()

    def _value(self, loader: yaml.SafeLoader, node: yaml.Node, key: Key) -> Any:
        self._written.setdefault(key, node.start_mark.line + 1)
        match node:
            case yaml.MappingNode():
                return self._mapping(loader, node, key)
            case yaml.SequenceNode():
                return [
                    self._value(loader, item, (*key, place))
                    for place, item in enumerate(node.value)
                ]
            case _:
                return cast(Any, loader).construct_object(node)

    def _mapping(self, loader: yaml.SafeLoader, node: yaml.MappingNode, key: Key) -> dict[str, Any]:
        values: dict[str, Any] = {}
        for name_node, value_node in node.value:
            line = name_node.start_mark.line + 1
            name = name_node.value
            if not isinstance(name, str):
                raise YamlProblem("a key is a list or a table, expected a text", line)
            if name in values:
                raise YamlProblem(f"{name!r} is written again, expected it only once", line)
            inside = (*key, name)
            self._written[inside] = line
            values[name] = self._value(loader, value_node, inside)
        return values
