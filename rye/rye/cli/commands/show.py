"""``rye show``: what a tool does, its parameters and an example."""

from __future__ import annotations

import click

from rye.cli.completion import complete_item
from rye.cli.invocation import Invocation
from rye.cli.output.errors import print_error
from rye.cli.output.printing import echo, print_json


@click.command()
@click.argument("item", shell_complete=complete_item)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, item: str, as_json: bool) -> None:
    """Show what ITEM does, its parameters, its signature and pin, and an example call.

    If the item cannot run, the reason is printed. Nothing is run. A short id such as grep is enough
    if it is unambiguous.

    \b
    Examples:
      rye show rye/fs/grep
      rye show bash --json
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.example import example_parameters
    from rye.cli.output.show_page import error_of, example_call, json_page, text_page
    from rye.executor.inspection import inspect_chain

    context = invocation.context
    entry = Catalogue(context).entry(item)
    inspection = inspect_chain(entry.item_id, context)
    declared = [one.get("params", {}) for one in entry.examples]
    parameters = None if entry.fault else example_parameters(entry.schema)
    parameters = declared[0] if declared else parameters
    call = None if parameters is None else example_call(entry, parameters)
    if as_json:
        print_json(json_page(entry, call, inspection))
    else:
        echo(text_page(entry, call, inspection))
    if error := error_of(entry, inspection):
        print_error(error)
