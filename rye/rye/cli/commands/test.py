"""``rye test``: run the examples of tools, and compare the results."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_tool
from rye.cli.invocation import Invocation
from rye.cli.output.errors import OTHER, print_error
from rye.cli.output.printing import plain, print_json, style

if TYPE_CHECKING:
    from rye.authoring.examples import Tried
    from rye.catalogue.entry import CatalogueEntry


@click.command()
@click.argument("items", metavar="[ITEM]...", nargs=-1, shell_complete=complete_tool)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, items: tuple[str, ...], as_json: bool) -> None:
    """Run the example calls of tools, and compare their results with what is expected.

    A tool declares them as `examples`, in Python as EXAMPLES: a list of {params, expect}. An object
    matches if it has the expected members; everything else must be equal. A text is compared with
    the output of the tool. Without `expect` the call must only succeed.

    Without arguments, the tools of the project that have examples are tested. The tools are really
    run. The exit code is 1 if an example fails.

    \b
    Examples:
      rye test
      rye test team/hello
    """
    from rye.authoring.examples import failed, try_examples
    from rye.catalogue.catalogue import Catalogue
    from rye.executor.run.blocking import BlockingExecutor

    context = invocation.context
    catalogue = Catalogue(context)
    entries: list[CatalogueEntry]
    if items:
        entries = [catalogue.entry(item) for item in items]
    else:
        entries = [one for one in catalogue.entries() if one.space == "project" and one.examples]
    done: list[Tried] = []
    with BlockingExecutor(context) as executor:
        for entry in entries:
            if not entry.examples and not as_json:
                click.echo(
                    f"note: {plain(entry.item_id)} has no examples; add them to its metadata",
                    err=True,
                )
            for one in try_examples(entry, executor):
                done.append(one)
                if not as_json:
                    _print(one)
    if as_json:
        print_json([one._asdict() for one in done])
    else:
        click.echo(f"{len(done) - failed(done)} of {len(done)} examples passed")
    if failed(done):
        raise click.exceptions.Exit(OTHER)


def _print(one: Tried) -> None:
    state = style("failed", fg="red", bold=True) if one.problem else style("ok    ", fg="green")
    click.echo(f"{state}  {plain(one.item_id)} example {one.number}")
    if one.problem:
        print_error(one.problem)
