"""``rye list``: the tools that there are."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Surroundings
from rye.cli.output.errors import tell
from rye.cli.output.printing import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.catalogue.entry import Summary

_LOOKS: list[dict[str, object]] = [{"bold": True}, {}, {"dim": True}, {}]


@click.command()
@click.argument("prefix", default="")
@click.option(
    "--space", type=click.Choice(["project", "user", "system"]), help="Only those of one space."
)
@click.option("--type", "tool_type", help="Only those of a type, such as python or runtime.")
@click.option("--all", "everything", is_flag=True, help="Runtimes and primitives, too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    surroundings: Surroundings,
    *,
    prefix: str,
    space: str | None,
    tool_type: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """List the tools that there are: id, version, space and what each does.

    PREFIX is the beginning of the ids to list. An item that another space hides is not listed. A
    file whose metadata cannot be read is listed and told; nothing is verified or run.

    \b
    Examples:
      rye list
      rye list rye/fs
      rye list --type runtime
      rye list --space system --json
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.cli.output.bar import watched

    catalogue = Catalogue(surroundings.context, watch=watched)
    everything = everything or tool_type is not None
    found = [
        each
        for each in catalogue.summaries()
        if each.item_id.startswith(prefix)
        and (everything or each.is_tool)
        and space in (None, each.space)
        and tool_type in (None, each.tool_type)
    ]
    if as_json:
        print_json([each._asdict() for each in found])
    else:
        print_table([_row(each) for each in found], looks=_LOOKS)
    _tell_what_is_wrong(found, catalogue.problems())
    if not found and not as_json:
        narrowed = bool(prefix or space or tool_type)
        tell(
            "no tool fits; see all with `rye list --all`"
            if narrowed
            else "there are no tools; make one with `rye init` or `rye new NAME`"
        )


def _row(each: Summary) -> tuple[str, str, str, str]:
    from rye.catalogue.entry import one_line

    space = f"{each.space} ({each.bundle})" if each.bundle not in ("", "rye") else each.space
    if each.fault:
        return each.item_id, "?", space, "cannot be read"
    return each.item_id, each.version, space, one_line(each.description)


def _tell_what_is_wrong(found: Sequence[Summary], problems: Sequence[str]) -> None:
    for fault in [each.fault for each in found if each.fault]:
        tell(fault)
    for problem in problems:
        tell(problem)
