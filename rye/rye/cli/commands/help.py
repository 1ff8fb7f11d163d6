"""``rye help``: the help of a command or of a tool."""

from __future__ import annotations

import click

from rye.cli.completion import complete_help
from rye.cli.invocation import Invocation
from rye.cli.output.printing import echo


@click.command()
@click.argument("words", metavar="[COMMAND...|TOOL]", nargs=-1, shell_complete=complete_help)
@click.pass_context
def command(ctx: click.Context, words: tuple[str, ...]) -> None:
    """Show the help of a command, or the parameters of a tool.

    \b
    Examples:
      rye help
      rye help run
      rye help trust add
      rye help rye/fs/grep
    """
    parent = ctx.find_root()
    found: click.Command = parent.command
    for at, word in enumerate(words):
        below = found.get_command(parent, word) if isinstance(found, click.Group) else None
        if below is None:
            if at == 0 and len(words) == 1:
                _print_help_of_tool(ctx.ensure_object(Invocation), word)
                return
            ctx.fail(f"no such command {' '.join(words[: at + 1])!r}")
        found, parent = below, click.Context(below, parent, word)
    echo(found.get_help(parent))


def _print_help_of_tool(invocation: Invocation, item_id: str) -> None:
    from rye.catalogue.catalogue import Catalogue
    from rye.cli.output.tool_help import help_of

    echo(help_of(Catalogue(invocation.context).entry(item_id)))
