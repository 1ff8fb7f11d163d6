"""``rye tools``: definitions for an agent framework."""

from __future__ import annotations

import click

from rye.catalogue.definitions import FORMATS, Format
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import tell
from rye.cli.output.printing import print_json


@click.command()
@click.argument("prefixes", metavar="[PREFIX]...", nargs=-1)
@click.option(
    "--format",
    "wanted",
    type=click.Choice(FORMATS),
    default="mcp",
    show_default=True,
    help="Whose definitions.",
)
@click.option("--all", "everything", is_flag=True, help="Runtimes and primitives, too.")
@click.pass_obj
def command(
    surroundings: Surroundings, prefixes: tuple[str, ...], wanted: Format, everything: bool
) -> None:
    """Print the definitions of the tools as a JSON list, for use in an agent framework.

    PREFIX is the beginning of the ids to print. Names have no slashes: rye/fs/read is rye.fs.read
    for MCP and rye__fs__read for the others, and `rye run` takes the id. Where that would be too
    long or not lead back to the id, the name ends in a hash and the description names the id.

    \b
    Examples:
      rye tools --format anthropic
      rye tools --format openai rye/fs
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.definitions import definitions
    from rye.cli.output.bar import watched

    entries = [
        entry
        for entry in Catalogue(surroundings.context, watch=watched).entries()
        if (everything or entry.is_tool) and entry.item_id.startswith(prefixes or ("",))
    ]
    for entry in entries:
        if entry.fault:
            tell(entry.fault)
    print_json(definitions([entry for entry in entries if not entry.fault], wanted))
