"""``rye check``: whether tools would run, and what their authors should know."""

from __future__ import annotations

import click

from rye.cli.completion import complete_tool
from rye.cli.invocation import Invocation
from rye.cli.output.errors import OTHER, print_error
from rye.cli.output.printing import print_json, print_table, shorten_paths


@click.command()
@click.argument("items", metavar="[ITEM]...", nargs=-1, shell_complete=complete_tool)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, items: tuple[str, ...], as_json: bool) -> None:
    """Check that tools would run, up to the point where parameters are needed. No tool is run.

    Without arguments, all tools of the project and the settings in .ai/config.yaml are checked.

    Errors are what would keep a tool from running, and what nobody can have meant: a missing or
    invalid signature, a syntax error, an unknown key, a placeholder without a parameter, a missing
    program or Python module, a file of the project that is not pinned. Whether lockfiles match is
    checked by `rye lock --check`.

    A tool gets a warning if it declares no permissions, no description or no schema, if it does not
    use a parameter, if it runs a program such as make, which reads files of the project by itself,
    or if it mentions a variable of the project's .env without asking for it.

    The exit code is 1 if there is an error; warnings do not change it.

    \b
    Examples:
      rye check
      rye check team/build
    """
    from rye.authoring.check import Checker
    from rye.authoring.settings_file import check_settings

    checker = Checker(invocation.context)
    done = [checker.check(item) for item in items or checker.project_items()]
    if not items:
        done += [one for one in check_settings(invocation.context) if one.errors]
    if as_json:
        print_json(
            [
                {
                    "item_id": one.item_id,
                    "state": one.state,
                    "errors": list(one.errors),
                    "warnings": list(one.warnings),
                }
                for one in done
            ]
        )
    else:
        print_table([(one.state, shorten_paths(one.item_id)) for one in done])
        for one in done:
            for message in (*one.errors, *one.warnings):
                print_error(message)
    if any(one.errors for one in done):
        raise click.exceptions.Exit(OTHER)
