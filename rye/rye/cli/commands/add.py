"""``rye add``: turn a script, a program or a target into a signed tool."""

from __future__ import annotations

import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.printing import display, field_list, plain, print_json, shorten_paths, style
from rye.errors import RyeError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rye.authoring.adopt.add import Added
    from rye.authoring.adopt.recognise import Proposal
    from rye.catalogue.entry import CatalogueEntry
    from rye.context import Context
    from rye.spaces.model import SpaceName


@click.command()
@click.argument("source", metavar="PATH|URL", type=click.Path())
@click.option("--as", "item_id", metavar="ID", help="The id of the tool. Default: the file's name.")
@click.option(
    "--space",
    type=click.Choice(["project", "user"]),
    default="project",
    show_default=True,
    help="Add the tool to this project, or to all your projects.",
)
@click.option("--yes", "-y", is_flag=True, help="Do not ask before the tool is signed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    source: str,
    item_id: str | None,
    space: SpaceName,
    yes: bool,
    as_json: bool,
) -> None:
    """Turn what you have into a signed tool that can be run at once.

    PATH is a Python, shell or JavaScript file, any other script with a first line such as
    #!/usr/bin/env perl, a program, or a target: Makefile:build, package.json:test.

    What the file takes is read from it, and nothing is executed for that: the signature of main()
    and its docstring, the options of argparse, click and typer, the names of getopts, $1. A
    file outside of .ai/tools is copied, and the original stays as it is. Both can still be used
    without Rye.

    PATH may also be GIT-URL@REF#FOLDER, or an archive with #FOLDER: its tools are copied to your
    user space under one name, as they were signed, and the commit is recorded. You see who signed
    them and what they may do; a key is trusted only if you trust it yourself, with `rye trust add`.

    The proposal is shown before you sign it. --yes answers yes; without a terminal it is required.

    \b
    Examples:
      rye add https://example.org/team/tools.git@v1.2#notes
      rye add fetch.py
      rye add scripts/backup.sh --as ops/backup
      rye add Makefile:build --yes
    """
    from rye.authoring.adopt.add import add_tool, place_of
    from rye.authoring.adopt.recognise import propose
    from rye.authoring.sources.reference import reference_of
    from rye.spaces.model import Space

    context = invocation.context
    reference = reference_of(source, Path.cwd())
    if reference is not None:
        from rye.cli.sources import add_source

        add_source(reference, item_id or reference.name, context, yes=yes, as_json=as_json)
        return
    proposal = propose(source, Path.cwd(), context.project_path)
    home = context.user_space if space == "user" else context.project_path
    where = Space(name=space, root=home / ".ai")
    path = Path(os.path.normpath(Path.cwd() / source))
    place = place_of(path if path.is_file() else None, proposal, item_id, where)
    if not as_json:
        _show(proposal, place)
    if not yes:
        _ask(place)
    added = add_tool(proposal, place, where, context)
    approved = _approve(proposal, context, yes=yes)
    _report(added, proposal, context, approved=approved, as_json=as_json)


def _show(proposal: Proposal, place: Added) -> None:
    from rye.catalogue.parameters import parameters_of
    from rye.items.element import ItemFile
    from rye.items.metadata import parse_metadata

    file = ItemFile(path=place.path, content=proposal.text.encode())
    metadata = parse_metadata(file)
    parameters = parameters_of(metadata.config_schema)
    described = [
        f"{one.name} ({one.kind}{', required' if one.required else ''})" for one in parameters
    ]
    facts = [
        ("found", proposal.kind),
        ("id", place.item_id),
        ("description", metadata.description or "none; add one, so that agents find it"),
        ("parameters", ", ".join(described) or "none"),
        ("runs on", metadata.executor_id or ""),
    ]
    if proposal.pins:
        facts.append(("pins", ", ".join(proposal.pins)))
    click.echo(field_list([(name, plain(text)) for name, text in facts]))
    for note in proposal.notes:
        click.echo(f"note: {plain(note)}", err=True)


def _ask(place: Added) -> None:
    if not sys.stdin.isatty():
        raise RyeError(
            f"nothing was written: {place.path} would be signed with your key",
            hint="read the script, then pass --yes",
        )
    verb = "add a header to it" if place.in_place else "write it"
    if not click.confirm(
        f"\n{display(place.path)}: {verb} and sign it with your key?", default=True
    ):
        raise click.Abort


def _approve(proposal: Proposal, context: Context, *, yes: bool) -> bool:
    """Approve the project for a tool that runs its unsigned files, if nothing else is unsigned."""
    from rye.trust.project_approval import ProjectApproval, unsigned_parts

    if not proposal.pins:
        return True
    parts, approval = unsigned_parts(context), ProjectApproval(context)
    if not approval.why_not(parts):
        return True
    if not parts.is_empty:
        return False
    files = ", ".join(proposal.pins)
    if not yes and not click.confirm(f"run {plain(files)}, which nobody signed?", default=True):
        return False
    approval.approve(parts)
    return True


def _report(
    added: Added, proposal: Proposal, context: Context, *, approved: bool, as_json: bool
) -> None:
    from rye.authoring.check import Checker
    from rye.catalogue.catalogue import Catalogue

    entry = Catalogue(context).entry(added.item_id)
    problems = Checker(context).check(added.item_id).errors
    call = _first_call(entry)
    if as_json:
        print_json(
            {
                "item_id": added.item_id,
                "path": str(added.path),
                "kind": proposal.kind,
                "executor_id": entry.executor_id,
                "description": entry.description,
                "schema": entry.schema,
                "pins": list(added.pinned),
                "notes": list(proposal.notes),
                "problems": list(problems),
                "next": list(_next(call, approved=approved)),
            }
        )
        return
    done = "changed" if added.in_place else "created"
    click.echo(f"\n{style(done, fg='green')} {display(added.path)}, signed with your key")
    for problem in problems:
        click.echo(f"note: it cannot run here yet: {plain(shorten_paths(problem))}", err=True)
    click.echo("\nNext:")
    for line in _next(call, approved=approved):
        click.echo(f"  {style(plain(line), bold=True)}")


def _next(call: str, *, approved: bool) -> Iterator[str]:
    if not approved:
        yield "rye trust project"
    yield call


def _first_call(entry: CatalogueEntry) -> str:
    from rye.catalogue.example import example_parameters
    from rye.cli.output.show_page import example_call

    parameters = example_parameters(entry.schema)
    if parameters is None:
        return f"rye show {shlex.quote(entry.item_id)}"
    return example_call(entry, parameters)
