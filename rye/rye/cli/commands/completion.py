"""`rye completion`."""

from __future__ import annotations

import click


@click.command()
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print the completion script for a shell.

    It completes commands, options, the ids of tools, their parameters, and the values of a
    parameter that has only a few.

    \b
    Examples:
      eval "$(rye completion bash)"
      rye completion zsh > "${fpath[1]}/_rye"
      rye completion fish > ~/.config/fish/completions/rye.fish
    """
    from rye.cli.app import app
    from rye.cli.completion.shells import script_for

    click.echo(script_for(app, shell), nl=False)
