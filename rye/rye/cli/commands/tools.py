"""``rye tools``: tool definitions for an agent framework."""

from __future__ import annotations

import click

from rye.catalogue.definitions import FORMATS, Format
from rye.cli.invocation import Invocation
from rye.cli.output.errors import print_faults
from rye.cli.output.printing import print_json


@click.command()
@click.argument("prefixes", metavar="[PREFIX]...", nargs=-1)
@click.option(
    "--format",
    "wanted",
    type=click.Choice(FORMATS),
    default="mcp",
    show_default=True,
    help="The format of the definitions.",
)
@click.option("--all", "everything", is_flag=True, help="Include runtimes and primitives.")
@click.pass_obj
def command(
    invocation: Invocation, prefixes: tuple[str, ...], wanted: Format, everything: bool
) -> None:
    """Print tool definitions as a JSON list, for use in an agent framework.

    With PREFIX, only ids that begin with it are printed. Names cannot contain slashes: rye/fs/read
    becomes rye.fs.read for MCP and rye__fs__read in the other formats; `rye run` takes the id. A
    name that would be too long or ambiguous ends in a hash, and the description contains the id.

    \b
    Examples:
      rye tools --format anthropic
      rye tools --format openai rye/fs
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.definitions import definitions
    from rye.cli.output.progress import with_progress_bar

    entries = [
        entry
        for entry in Catalogue(invocation.context, watch=with_progress_bar).entries()
        if (everything or entry.is_tool) and entry.item_id.startswith(prefixes or ("",))
    ]
    print_faults([entry.fault for entry in entries if entry.fault])
    print_json(definitions([entry for entry in entries if not entry.fault], wanted))
