"""``rye unlock``: remove the pins of tools."""

from __future__ import annotations

import click

from rye.cli.completion import complete_tool
from rye.cli.invocation import Invocation
from rye.cli.output.printing import display, print_json


@click.command()
@click.argument("items", metavar="ITEM...", nargs=-1, required=True, shell_complete=complete_tool)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, items: tuple[str, ...], as_json: bool) -> None:
    """Remove the lockfiles of tools from the project, for all versions.

    The tools need not exist any more. The next successful run pins a tool again, with its content
    at that time.

    \b
    Examples:
      rye unlock team/hello
    """
    from rye.executor.pinning import Locking

    locking = Locking(invocation.context)
    removed = []
    for item in items:
        paths = locking.unpin(item)
        removed += [str(path) for path in paths]
        if not as_json:
            for path in paths:
                click.echo(f"removed {display(path)}")
    if as_json:
        print_json({"removed": removed})
