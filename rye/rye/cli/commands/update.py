"""``rye update``: fetch tools again that were added from a repository or an archive."""

from __future__ import annotations

import click

from rye.cli.invocation import Invocation
from rye.cli.output.printing import print_json
from rye.errors import ItemNotFoundError


@click.command()
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the tools are replaced.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, names: tuple[str, ...], *, yes: bool, as_json: bool) -> None:
    """Update the tools of a source that `rye add URL` added; without NAME, of every source.

    The branch or tag is fetched again. If it is another commit, you see which files changed, who
    signed them and what they may do, and are asked. Pins of the tools in your projects stay, so
    that each project accepts the change with `rye lock --update`. A source with a file that you
    changed is not updated.

    \b
    Examples:
      rye update
      rye update notes --yes
    """
    from rye.authoring.sources.store import Sources
    from rye.cli.sources import update_source

    context = invocation.context
    sources = Sources(context)
    done = []
    for name in names or sources.names():
        source = sources.find(name)
        if source is None:
            known = ", ".join(sources.names())
            raise ItemNotFoundError(
                f"there is no source {name!r}",
                hint=f"use one of {known}" if known else "add one with: rye add URL",
            )
        updated = update_source(source, context, yes=yes, as_json=as_json)
        done += [updated] if updated is not None else []
    if as_json:
        print_json(done)
    elif not names and not sources.names():
        click.echo("no sources; add one with: rye add URL")
