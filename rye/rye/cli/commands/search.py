"""``rye search``: tools by words."""

from __future__ import annotations

import click

from rye.cli.invocation import Surroundings
from rye.cli.output.errors import tell
from rye.cli.output.printing import print_json, print_table


@click.command()
@click.argument("words", nargs=-1, required=True)
@click.option(
    "--limit", type=click.IntRange(1), default=10, show_default=True, help="How many at most."
)
@click.option("--all", "everything", is_flag=True, help="Runtimes and primitives, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    surroundings: Surroundings,
    *,
    words: tuple[str, ...],
    limit: int,
    everything: bool,
    as_json: bool,
) -> None:
    """Find tools by words in their ids, descriptions, categories and parameters.

    The best come first: those that have all the words, and have them in the id. Endings and small
    slips do not matter.

    \b
    Examples:
      rye search read file
      rye search 'regular expression'
      rye search http --all --json
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.catalogue.entry import one_line
    from rye.cli.output.bar import watched

    asked = " ".join(words)
    catalogue = Catalogue(surroundings.context, watch=watched)
    hits = catalogue.search(asked, limit, everything=everything)
    if as_json:
        print_json([{**hit.entry._asdict(), "score": hit.score} for hit in hits])
        return
    print_table(
        [(hit.entry.item_id, one_line(hit.entry.description or hit.entry.fault)) for hit in hits],
        looks=[{"bold": True}],
    )
    if not hits:
        tell(f"nothing fits {asked!r}; try fewer or other words, or see `rye list`")
