"""``rye check``: whether tools would run, and what their authors should know."""

from __future__ import annotations

import click

from rye.cli.completion import complete_tool
from rye.cli.invocation import Invocation
from rye.cli.output.errors import exit_code, print_error
from rye.cli.output.printing import print_json, print_table


@click.command()
@click.argument("items", metavar="[ITEM]...", nargs=-1, shell_complete=complete_tool)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, items: tuple[str, ...], as_json: bool) -> None:
    """Check that tools would run, up to the point where parameters are needed. Nothing is run.

    Without arguments, all tools of the project are checked: their signatures, their chains, and the
    files of the project that they name. A tool with `pins` needs a lockfile; whether lockfiles
    match is checked by `rye lock --check`.

    A tool gets a warning if it declares no permissions, if it runs a program such as make, which
    reads files of the project by itself, or if it mentions a variable of the project's .env without
    asking for it. The exit code is that of the first tool that would be refused; warnings do not
    change it.

    \b
    Examples:
      rye check
      rye check team/build
    """
    from rye.executor.checking import Checking

    checking = Checking(invocation.context)
    done = [checking.check(item) for item in items or checking.project_items()]
    if as_json:
        print_json(
            [
                {
                    "item_id": one.item_id,
                    "state": one.state,
                    "error": None if one.error is None else str(one.error),
                    "warnings": list(one.warnings),
                }
                for one in done
            ]
        )
    else:
        print_table([(one.state, one.item_id) for one in done])
        for one in done:
            for message in one.warnings if one.error is None else (str(one.error),):
                print_error(message)
    failed = [one.error for one in done if one.error is not None]
    if failed:
        raise click.exceptions.Exit(exit_code(type(failed[0])))
