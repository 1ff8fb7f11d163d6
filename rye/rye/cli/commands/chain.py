"""``rye chain``: what a tool runs on, who signed it, and whether it is pinned."""

from __future__ import annotations

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import exit_code, tell
from rye.cli.output.printing import echo, print_json


@click.command()
@click.argument("item", shell_complete=offers.items)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--mermaid", "as_picture", is_flag=True, help="Print a flowchart for Mermaid.")
@click.pass_obj
def command(surroundings: Surroundings, item: str, as_json: bool, as_picture: bool) -> None:
    """Show the chain of ITEM: the tool, its runtimes and the primitive that they end in.

    Each with its version, space, file, signer, hash and whether the lockfile pins it. Of a chain
    that may not run, all that could be reached is shown, and why it goes no further; the command
    then ends as `rye run` would. Nothing is run or written.

    \b
    Examples:
      rye chain rye/fs/grep
      rye chain rye/bash/bash --json
      rye chain rye/bash/bash --mermaid
    """
    from rye.cli.output.chain_page import as_json as json_page
    from rye.cli.output.chain_page import mermaid, tree
    from rye.executor.inspection import inspect_chain

    if as_json and as_picture:
        raise click.UsageError("--json and --mermaid are two forms; choose one")
    seen = inspect_chain(item, surroundings.context)
    if as_json:
        print_json(json_page(seen))
    elif as_picture:
        echo(mermaid(seen))
    else:
        echo(tree(seen))
    if seen.error is not None:
        tell(str(seen.error))
        raise click.exceptions.Exit(exit_code(type(seen.error)))
