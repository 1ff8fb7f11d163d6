"""``rye show``: what a tool does, its parameters and an example call."""

from __future__ import annotations

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import tell
from rye.cli.output.printing import echo, print_json


@click.command()
@click.argument("item", shell_complete=offers.items)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(surroundings: Surroundings, item: str, as_json: bool) -> None:
    """Show what ITEM does, its parameters, who signed it, and a call that its schema accepts.

    Nothing is run; what would keep it from running is told. A short id, such as grep, is enough if
    only one file bears it.

    \b
    Examples:
      rye show rye/fs/grep
      rye show bash --json
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.example import example_parameters
    from rye.cli.output.item_page import as_json as json_page
    from rye.cli.output.item_page import example_call, objection, page
    from rye.executor.inspection import inspect_chain

    context = surroundings.context
    entry = Catalogue(context).entry(item)
    seen = inspect_chain(entry.item_id, context)
    parameters = None if entry.fault else example_parameters(entry.schema)
    call = None if parameters is None else example_call(entry, parameters)
    if as_json:
        print_json(json_page(entry, call, seen))
    else:
        echo(page(entry, call, seen))
    if refused := objection(entry, seen):
        tell(refused)
