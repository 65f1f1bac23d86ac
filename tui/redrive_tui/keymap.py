"""The keymap file: other keys for the actions of `keys`, refused whole when it makes no sense.

Textual itself accepts any nonsense here and drops what clashes without a word, so everything
is checked before it is told: unknown actions and keys, two actions on one key of a screen,
and anything destructive on a key that is pressed by accident.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from textual.binding import Binding
from textual.keys import Keys, key_to_character

from redrive.errors import ConfigProblem
from redrive_tui.keys import FIXED, KEYS, SCREENS, every_key

Keymap = Mapping[str, str]  # action id -> keys, comma-separated, as Textual names them

_NAMED = frozenset(key.value for key in Keys)


def load(path: Path) -> dict[str, str]:
    """The keymap in a file: TOML, `job.kill = "K"` line by line."""
    try:
        written = dict(_flat(tomllib.loads(path.read_text())))
    except (OSError, tomllib.TOMLDecodeError) as problem:
        raise ConfigProblem(f"{path}: cannot be read as a keymap: {problem}") from problem
    found = list(problems(written))
    if found:
        raise ConfigProblem("\n".join(f"{path}: {problem}" for problem in found))
    return {action: ",".join(names(keys)) for action, keys in written.items()}


def names(keys: str) -> list[str]:
    """Keys as Textual names them: `?` is `question_mark`."""
    return [binding.key for binding in Binding.make_bindings([Binding(keys, "")])]


def problems(keymap: Keymap) -> Iterator[str]:
    """Everything that is wrong with a keymap."""
    known = every_key()
    for action, keys in keymap.items():
        if action not in known:
            yield f"{action}: no such action; `?` in the console lists them"
            continue
        for key in names(keys):
            if not _exists(key):
                yield f"{action}: no terminal sends the key {key!r}"
            elif known[action].destructive and len(key) == 1 and key.islower():
                yield f"{action}: destroys something, so it needs a capital letter, not {key!r}"
    yield from _clashes({action: keys for action, keys in keymap.items() if action in known})


def _clashes(keymap: Keymap) -> Iterator[str]:
    seen: set[tuple[str, ...]] = set()
    for screen, contexts in SCREENS.items():
        taken = {key.keys: key.description for key in FIXED}
        for action in (key for context in contexts for key in KEYS[context]):
            for name in names(keymap.get(action.id, action.keys)):
                other = taken.setdefault(name, action.id)
                clash = (name, *sorted((other, action.id)))
                if other != action.id and clash not in seen:
                    seen.add(clash)
                    yield f"{action.id}: the key {name!r} already means {other} on {screen}"


def _exists(key: str) -> bool:
    return key in _NAMED or ("+" not in key and key_to_character(key) is not None)


def _flat(table: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Dotted keys are tables to TOML; here they are names."""
    for name, value in table.items():
        match value:
            case dict():
                yield from _flat(cast("dict[str, Any]", value), f"{prefix}{name}.")
            case _:
                yield f"{prefix}{name}", str(value)
