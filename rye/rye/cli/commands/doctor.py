"""``rye doctor``: problems with the setup, and how to fix them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import OTHER
from rye.cli.output.printing import display, plain, print_json, style

if TYPE_CHECKING:
    from rye.doctor.checks import Finding

_COLOURS = {"ok": "green", "fixed": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.option("--fix", is_flag=True, help="Fix what can be fixed safely.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, fix: bool, as_json: bool) -> None:
    """Find problems with your setup, and how to fix them.

    Checks the helper lilux-proc, your key and the trust store, the directories, the interpreter of
    each runtime, the metadata of all items, and the tools of the project as `rye check` does. No
    tool is run. The exit code is 1 if there is a problem. A missing program that no tool needs is
    only a warning.

    --fix removes the access of others to your key, creates missing directories, and removes
    outdated caches and the lockfiles of tools that do not exist. It never makes anything trusted.
    Without --fix, nothing is changed.

    \b
    Examples:
      rye doctor
      rye doctor --fix
      rye doctor --json
    """
    from rye.doctor.findings import findings

    found = []
    for finding in findings(invocation.context, fix=fix):
        found.append(finding)
        if not as_json:
            _print(finding)
    problems = sum(one.state == "problem" for one in found)
    if as_json:
        print_json({"ok": not problems, "findings": [one._asdict() for one in found]})
    else:
        warnings = sum(one.state == "warning" for one in found)
        click.echo(f"\n{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    if problems:
        raise click.exceptions.Exit(OTHER)


def _print(finding: Finding) -> None:
    state = style(f"{finding.state:<7}", fg=_COLOURS[finding.state], bold=finding.state != "ok")
    click.echo(f"{state}  {plain(finding.subject)}: {display(finding.message)}")
    if finding.hint:
        click.echo(f"{'':7}  → {display(finding.hint)}")


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
