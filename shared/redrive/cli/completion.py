"""`redrive completion`: what makes a shell complete verbs and options."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from redrive.cli.verb import Verb


@click.command(
    cls=Verb,
    examples=[
        'eval "$(redrive completion bash)"    # in ~/.bashrc',
        'eval "$(redrive completion zsh)"     # in ~/.zshrc',
        "redrive completion fish > ~/.config/fish/completions/redrive.fish",
    ],
)
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
@click.pass_context
def completion(context: click.Context, shell: str) -> None:
    """Print the completion script for SHELL."""
    found = get_completion_class(shell)
    assert found is not None
    script = found(context.find_root().command, {}, "redrive", "_REDRIVE_COMPLETE")
    click.echo(script.source())
