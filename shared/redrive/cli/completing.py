"""What a shell may complete beyond verbs and options: the names in the config."""

from __future__ import annotations

from collections.abc import Callable

import click

from redrive.cli.settings import Settings
from redrive.config import find_config, load
from redrive.errors import RedriveError

Complete = Callable[[click.Context, click.Parameter, str], list[str]]


def names(*tables: str) -> Complete:
    """The names in these tables of the config, the file as it is now."""

    def complete(context: click.Context, _: click.Parameter, incomplete: str) -> list[str]:
        try:
            config = load(find_config(context.ensure_object(Settings).config_path)).config
        except RedriveError:
            return []  # a shell in the middle of a line is no place for its mistakes
        known = {name for table in tables for name in getattr(config, table)}
        return sorted(name for name in known if name.startswith(incomplete))

    return complete
