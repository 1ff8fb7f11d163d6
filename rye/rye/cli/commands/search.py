"""``rye search``: find tools by keyword."""

from __future__ import annotations

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import print_error
from rye.cli.output.printing import print_json, print_table


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit",
    type=click.IntRange(1),
    default=10,
    show_default=True,
    help="The maximum number of results.",
)
@click.option("--all", "everything", is_flag=True, help="Include runtimes and primitives.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    words: tuple[str, ...],
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """Search the ids, descriptions, categories and parameters of tools.

    The best matches come first: tools that match all words, and match in the id. Word endings and
    small typing mistakes are ignored.

    \b
    Examples:
      rye search read file
      rye search 'regular expression'
      rye search http --all --json
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.entry import one_line
    from rye.cli.output.progress import with_progress_bar

    query = " ".join(words)
    catalogue = Catalogue(invocation.context, watch=with_progress_bar)
    hits = catalogue.search(query, limit, everything=everything)
    if as_json:
        print_json([{**hit.entry._asdict(), "score": hit.score} for hit in hits])
        return
    print_table(
        [(hit.entry.item_id, one_line(hit.entry.description or hit.entry.fault)) for hit in hits],
        styles=[{"bold": True}],
    )
    if not hits:
        print_error(f"no tool matches {query!r}; try other words, or see `rye list`")
