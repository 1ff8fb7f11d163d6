"""``rye chain``: what a tool runs on, with signatures and pins."""

from __future__ import annotations

import click

from rye.cli.completion import complete_item
from rye.cli.invocation import Invocation
from rye.cli.output.errors import exit_code, print_error
from rye.cli.output.printing import echo, print_json


@click.command()
@click.argument("item", shell_complete=complete_item)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.option("--mermaid", "as_mermaid", is_flag=True, help="Print a Mermaid flowchart.")
@click.pass_obj
def command(invocation: Invocation, item: str, as_json: bool, as_mermaid: bool) -> None:
    """Show the chain of ITEM: the tool, its runtimes and the primitive at the end.

    Each element is shown with its version, space, file, signer, hash and pin. If the chain cannot
    run, the elements up to the fault are shown, and the exit code is that of `rye run`. Nothing is
    run or written.

    \b
    Examples:
      rye chain rye/fs/grep
      rye chain rye/bash/bash --json
      rye chain rye/bash/bash --mermaid
    """
    from rye.cli.output.chain_page import json_page, mermaid_page, text_page
    from rye.executor.inspection import inspect_chain

    if as_json and as_mermaid:
        raise click.UsageError("--json and --mermaid cannot be combined")
    inspection = inspect_chain(item, invocation.context)
    if as_json:
        print_json(json_page(inspection))
    elif as_mermaid:
        echo(mermaid_page(inspection))
    else:
        echo(text_page(inspection))
    if inspection.error is not None:
        print_error(str(inspection.error))
        raise click.exceptions.Exit(exit_code(type(inspection.error)))
