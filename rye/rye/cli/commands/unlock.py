"""``rye unlock``: remove the pins of tools."""

from __future__ import annotations

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.paths import shown
from rye.cli.output.printing import print_json


@click.command()
@click.argument("items", metavar="ITEM...", nargs=-1, required=True, shell_complete=offers.tools)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(surroundings: Surroundings, items: tuple[str, ...], as_json: bool) -> None:
    """Remove the project's lockfiles of tools, of every version.

    The tools need not be there any more. The next run pins them again, as they are then.

    \b
    Examples:
      rye unlock team/hello
    """
    from rye.executor.pinning import Locking

    locking = Locking(surroundings.context)
    removed = []
    for item in items:
        paths = locking.unpin(item)
        removed += [str(path) for path in paths]
        if not as_json:
            for path in paths:
                click.echo(f"removed {shown(path)}")
    if as_json:
        print_json({"removed": removed})
