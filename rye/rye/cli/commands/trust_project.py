"""``rye trust project``: the approval of the unsigned parts of a project."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import OTHER
from rye.cli.output.printing import is_terminal, plain, print_json

if TYPE_CHECKING:
    from rye.cli.output.project_page import Overview
    from rye.context import Context
    from rye.trust.project_approval import ProjectApproval


@click.command("project")
@click.option("--show", is_flag=True, help="Print what it would enable, with the digest, and stop.")
@click.option("--yes", is_flag=True, help="Approve without a question, as in a CI job.")
@click.option("--remove", is_flag=True, help="Withdraw the approval.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def project_command(
    invocation: Invocation, show: bool, yes: bool, remove: bool, as_json: bool
) -> None:
    """Approve the unsigned parts of this project.

    Signatures cover the tools, but not .env, .venv, node_modules, .ai/config.yaml and the programs
    in the pins of tools. These are used only after you approve the project. The command shows what
    that enables, and asks. You are asked again if the config, the names in .env or the existence of
    one of the folders changes, or if the project moves. Other values in .env do not matter.

    For CI, set RYE_APPROVE_PROJECT to the digest that --show prints, or run the command with --yes.

    \b
    Examples:
      rye trust project
      rye trust project --show
      rye trust project --yes
      rye trust project --remove
    """
    from rye.trust.project_approval import ProjectApproval

    if show + yes + remove > 1:
        raise click.UsageError("--show, --yes and --remove exclude each other")
    context = invocation.context
    approval = ProjectApproval(context)
    if remove:
        _remove(context, approval, as_json=as_json)
    else:
        _approve(context, approval, show=show, yes=yes, as_json=as_json)


def _approve(
    context: Context, approval: ProjectApproval, *, show: bool, yes: bool, as_json: bool
) -> None:
    from rye.cli.output.project_page import overview
    from rye.errors import UnapprovedProjectError
    from rye.trust.project_approval import COMMAND

    found = overview(context)
    project = context.project_path
    reason = approval.why_not(found.parts)
    if reason and not show:
        if not yes:
            if as_json or not is_terminal(sys.stdin):
                raise UnapprovedProjectError(
                    f"{project} is not approved, and there is no terminal to ask on",
                    hint="see what it would enable with --show; "
                    f"if you trust it, run: {COMMAND} --yes",
                )
            _print(context, approval, found, reason)
            if not click.confirm("\nUse these parts for the tools that you run here?", err=True):
                click.echo("not approved", err=True)
                raise click.exceptions.Exit(OTHER)
        # What was shown is approved, whatever the files contain by now.
        approval.approve(found.parts)
    if as_json:
        _print_json(context, found, approved=not reason or not show)
    elif reason and not show:
        click.echo(f"Approved {plain(str(project))}")
        click.echo(f"  {plain(str(approval.path))}")
    else:
        _print(context, approval, found, reason)


def _print(context: Context, approval: ProjectApproval, found: Overview, reason: str) -> None:
    from rye.cli.output.project_page import page

    project = plain(str(context.project_path))
    if not approval.is_needed:
        click.echo(f"{project} is your user space, which needs no approval")
    else:
        click.echo(f"{project}: {plain(reason) if reason else 'approved'}")
        click.echo(page(found))


def _print_json(context: Context, found: Overview, *, approved: bool) -> None:
    from rye.cli.output.project_page import as_json

    print_json({"project": str(context.project_path), "approved": approved, **as_json(found)})


def _remove(context: Context, approval: ProjectApproval, *, as_json: bool) -> None:
    from rye.errors import KeyStoreError

    project = context.project_path
    if not approval.withdraw():
        raise KeyStoreError(f"{project} is not approved", hint="there is nothing to remove")
    if as_json:
        print_json({"project": str(project), "removed": str(approval.path)})
    else:
        click.echo(f"No longer approving {plain(str(project))}")
        click.echo(f"  removed {plain(str(approval.path))}")
