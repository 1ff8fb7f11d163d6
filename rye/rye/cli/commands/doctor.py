"""``rye doctor``: what is missing on this machine, and how to get it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Surroundings
from rye.cli.output.errors import OTHER
from rye.cli.output.paths import shown
from rye.cli.output.printing import plain, print_json, style

if TYPE_CHECKING:
    from rye.cli.doctor.finding import Finding
    from rye.context import Context

_LOOKS = {"ok": "green", "warning": "yellow", "problem": "red"}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(surroundings: Surroundings, as_json: bool) -> None:
    """Find what is missing on this machine, and how to get it.

    Looks at the helper lilux-proc, your key and the trust store, the folders, the interpreter of
    each runtime, and items that cannot be found or read. Nothing is changed, and no tool is run.
    The command ends with 1 if there is a problem; what no tool needs is only a warning.

    \b
    Examples:
      rye doctor
      rye doctor --json
    """
    found = []
    for finding in _findings(surroundings.context):
        found.append(finding)
        if not as_json:
            _tell(finding)
    problems = sum(one.state == "problem" for one in found)
    if as_json:
        print_json({"ok": not problems, "findings": [one._asdict() for one in found]})
    else:
        warnings = sum(one.state == "warning" for one in found)
        click.echo(f"\n{_count(problems, 'problem')}, {_count(warnings, 'warning')}")
    if problems:
        raise click.exceptions.Exit(OTHER)


def _findings(context: Context) -> Iterator[Finding]:
    from lilux.primitives.errors import LiluxError

    from rye.cli.doctor.finding import problem
    from rye.cli.doctor.items import item_findings
    from rye.cli.doctor.machine import machine_findings
    from rye.cli.doctor.runtimes import runtime_findings
    from rye.cli.doctor.trust import trust_findings
    from rye.errors import RyeError

    looks = {
        "this machine": machine_findings,
        "trust": trust_findings,
        "items": item_findings,
        "runtimes": runtime_findings,
    }
    for subject, look in looks.items():
        try:
            yield from look(context)
        except (RyeError, LiluxError, OSError) as error:
            yield problem(subject, f"cannot be looked at: {error}")


def _tell(finding: Finding) -> None:
    state = style(f"{finding.state:<7}", fg=_LOOKS[finding.state], bold=finding.state != "ok")
    click.echo(f"{state}  {plain(finding.subject)}: {shown(finding.message)}")
    if finding.hint:
        click.echo(f"{'':7}  → {shown(finding.hint)}")


def _count(number: int, what: str) -> str:
    return f"{number or 'no'} {what}{'' if number == 1 else 's'}"
