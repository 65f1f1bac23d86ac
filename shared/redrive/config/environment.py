"""`${NAME}` and `${NAME:-default}` in the strings of a config, and keeping them secret.

What comes from the environment is taken for a secret: it is shown nowhere again. `$${` is a
plain `${`; every other `$` stands for itself, so a shell's `$1`, `$$` and `$(...)` are its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from urllib.parse import unquote

from redrive.config.lines import Key
from redrive.config.problems import Problems
from redrive.config.values import Toml

REDACTED = "[redacted]"

_PLAIN = "$${"
_REFERENCE = re.compile(r"\$\$\{|\$\{(?:([A-Za-z_][A-Za-z0-9_]*)(?::-([^}]*))?\})?")
_PASSWORD = re.compile(r"(://[^/?#@:\s]*:)[^?#\s]+(?=@)|([?&]password=)[^&#\s]+")
_SHORTEST_SECRET = 4  # hiding shorter ones would riddle every other text


class Environment:
    """Fills in the variables of a tree of values, and remembers which were filled in."""

    def __init__(self, environ: Mapping[str, str], problems: Problems) -> None:
        self.masked: dict[Key, str] = {}  # how the strings that held variables may be shown
        self.secrets: set[str] = set()
        self._environ = environ
        self._problems = problems

    def fill_in(self, table: dict[str, Toml], key: Key = ()) -> dict[str, Toml]:
        """The table anew, with every variable in its texts replaced by its value."""
        return {name: self._value(item, (*key, name)) for name, item in table.items()}

    def _value(self, value: Toml, key: Key) -> Toml:
        match value:
            case str() if "$" in value:
                return self._text(value, key)
            case dict():
                return self.fill_in(value, key)
            case list():
                return [self._value(item, (*key, place)) for place, item in enumerate(value)]
            case _:
                return value

    def _text(self, text: str, key: Key) -> str:
        try:
            full = _REFERENCE.sub(self._meaning, text)
        except ValueError as wrong:
            self._problems.add(key, str(wrong))
            return text
        if "${" in text.replace(_PLAIN, ""):
            self.masked[key] = _REFERENCE.sub(_mask, text)
        return full

    def _meaning(self, found: re.Match[str]) -> str:
        if found[0] == _PLAIN:
            return "${"
        name, default = found.groups()
        if name is None:
            raise ValueError('got a "${" that names no variable, expected "$${" if it is meant so')
        value = self._environ.get(name)
        if not value and default is not None:
            return str(default)  # as in a shell, also for a variable that is set but empty
        if value is None:
            text = f"the variable {name} is not set, expected a value or ${{{name}:-default}}"
            raise ValueError(text)
        if any("\ud800" <= letter <= "\udfff" for letter in value):
            raise ValueError(f"the variable {name} is not UTF-8")
        self.secrets.add(value)
        return value


def _mask(found: re.Match[str]) -> str:
    return "${" if found[0] == _PLAIN else REDACTED


def passwords(url: str) -> set[str]:
    """The passwords inside a URL, as written and as meant."""
    written = {found[0].removeprefix(found[1] or found[2]) for found in _PASSWORD.finditer(url)}
    return written | set(map(unquote, written))


def redact(text: str, secrets: Iterable[str]) -> str:
    """`text` without the secrets, and without the password of any URL in it."""
    for secret in sorted(secrets, key=len, reverse=True):
        if len(secret) >= _SHORTEST_SECRET:
            text = text.replace(secret, REDACTED)
    return _PASSWORD.sub(lambda found: (found[1] or found[2]) + REDACTED, text)
