"""``rye rm``: remove tools with their pins."""

from __future__ import annotations

import sys

import click

from rye.cli.completion import complete_item
from rye.cli.invocation import Invocation
from rye.cli.output.printing import display, plain, print_json, style
from rye.errors import RyeError


@click.command()
@click.argument("items", metavar="ITEM...", nargs=-1, required=True, shell_complete=complete_item)
@click.option("--yes", "-y", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, items: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Remove tools of the project or the user, with their pins in this project.

    An item that others run on is not removed. If the file belongs to a tool of several files, the
    pin of that tool is updated. The name of a source that `rye add URL` made removes all its tools.
    Without a terminal, --yes is required.

    \b
    Examples:
      rye rm team/hello
      rye rm team/hello team/bye --yes
    """
    from rye.authoring.removal import Removed, removable, remove
    from rye.authoring.sources.store import Sources

    context = invocation.context
    sources = Sources(context)
    named = [source for item in items if (source := sources.find(item)) is not None]
    others = [item for item in items if sources.find(item) is None]
    found = [removable(item, context) for item in others]
    if not yes:
        names = [f"all tools of {one.name}" for one in named]
        _ask([*names, *[display(one.path) for one in found]])
    done = [Removed(one.name, sources.remove(one), ()) for one in named]
    done += [remove(one, context) for one in found]
    if as_json:
        print_json(
            [
                {
                    "item_id": one.item_id,
                    "removed": [str(path) for path in one.files],
                    "pins_updated": list(one.updated),
                }
                for one in done
            ]
        )
        return
    for one in done:
        for path in one.files:
            click.echo(f"removed {display(path)}")
        for item_id in one.updated:
            click.echo(f"{style('updated pin', fg='green')} {plain(item_id)}")


def _ask(names: list[str]) -> None:
    if not sys.stdin.isatty():
        raise RyeError(f"nothing was removed: {', '.join(names)}", hint="pass --yes to remove them")
    if not click.confirm(f"remove {', '.join(names)}?", default=False):
        raise click.Abort
