"""``rye list``: the available tools."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import MAX_FAULTS, print_error, print_faults
from rye.cli.output.printing import print_json, print_table

if TYPE_CHECKING:
    from rye.catalogue.entry import Summary

_STYLES: list[dict[str, object]] = [{"bold": True}, {}, {"dim": True}, {}]


@click.command()
@click.argument("prefix", default="")
@click.option(
    "--space", type=click.Choice(["project", "user", "system"]), help="List only this space."
)
@click.option("--type", "tool_type", help="List only this type, such as python or runtime.")
@click.option("--all", "everything", is_flag=True, help="Include runtimes and primitives.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    prefix: str,
    space: str | None,
    tool_type: str | None,
    everything: bool,
    as_json: bool,
) -> None:
    """List available tools: id, version, space and description.

    A tool that declares no permissions is marked as unconfined: it can do everything that you can.

    With PREFIX, only ids that begin with it are listed. If several spaces have the same id, the
    one that would run is listed. The first 20 files with unreadable metadata are listed too, and
    their errors are printed; --json lists all of them. Nothing is verified or run.

    \b
    Examples:
      rye list
      rye list rye/fs
      rye list --type runtime
      rye list --space system --json
    """
    from rye.catalogue.catalogue import Catalogue
    from rye.cli.output.progress import with_progress_bar

    catalogue = Catalogue(invocation.context, watch=with_progress_bar)
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
        named = {each.item_id for each in [each for each in found if each.fault][:MAX_FAULTS]}
        shown = [each for each in found if not each.fault or each.item_id in named]
        print_table([_row(each) for each in shown], styles=_STYLES)
    print_faults([*(each.fault for each in found if each.fault), *catalogue.problems()])
    if not found and not as_json:
        filtered = bool(prefix or space or tool_type)
        print_error(
            "no matching tools; list all with `rye list --all`"
            if filtered
            else "no tools; create one with `rye init` or `rye new NAME`"
        )


def _row(each: Summary) -> tuple[str, str, str, str]:
    from rye.catalogue.entry import one_line

    space = f"{each.space} ({each.bundle})" if each.bundle not in ("", "rye") else each.space
    if each.fault:
        return each.item_id, "?", space, "cannot be read"
    about = one_line(each.description)
    if each.is_tool and not each.confined:
        about = f"(unconfined) {about}".rstrip()
    return each.item_id, each.version, space, about
