"""`redrive config`: is the file right, and what does it amount to?"""

from __future__ import annotations

import click

from redrive.cli.output import print_json, say
from redrive.cli.settings import Settings
from redrive.cli.verb import Noun
from redrive.config import ConfigRejected


@click.group(cls=Noun)
def config() -> None:
    """Check the config file, or show what it amounts to."""


@config.command(examples=["redrive config check", "redrive --config new.toml config check"])
@click.pass_obj
def check(settings: Settings) -> None:
    """Name every mistake in the file by its place, and what it names that is not there.

    Exits with 78 when there is one.
    """
    loaded = settings.whole_config(look_around=True)
    if loaded.problems:
        raise ConfigRejected([*loaded.problems])
    found = loaded.config
    counts = {
        name: len(getattr(found, name))
        for name in ("tasks", "queues", "pipelines", "schedules", "pools", "errors", "hooks")
    }
    if settings.as_json:
        print_json({"path": found.path, "ok": True, **counts})
    else:
        listed = ", ".join(
            f"{count} {name if count > 1 else name.removesuffix('s')}"
            for name, count in counts.items()
            if count
        )
        say(f"{found.path} is right: {listed}")


@config.command(examples=["redrive config show", "redrive config show --json | jq .store.keep"])
@click.pass_obj
def show(settings: Settings) -> None:
    """Print the config, defaults filled in, secrets left out.

    With --json durations are seconds, sizes bytes, and null is forever.
    """
    from redrive.config import show as as_toml
    from redrive.config import show_as_json

    loaded = settings.whole_config()
    if settings.as_json:
        print_json(show_as_json(loaded))
    else:
        say(as_toml(loaded).rstrip())
