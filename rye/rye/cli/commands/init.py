"""``rye init``: set up a project, with a signing key and a first tool."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.printing import display, plain, print_json, style

if TYPE_CHECKING:
    from rye.cli.new.project import Setup


@click.command()
@click.argument("folder", metavar="[DIR]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, folder: str | None, as_json: bool) -> None:
    """Set up a project in DIR, by default the current directory.

    Creates .ai/tools, your signing key if you have none, and a first tool that you can run.
    Existing files are not changed, so it is safe to run the command again.

    \b
    Examples:
      rye init
      rye init my-project
    """
    from rye.cli.new.project import set_up
    from rye.errors import RyeError

    # Not in the nearest project upwards: a directory inside a project may become a project too.
    place = str(Path(invocation.project_option or "", folder or ""))
    target = Path.cwd() / place
    try:
        target.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise RyeError(f"{target} is not a directory", hint="choose another name") from None
    setup = set_up(target)
    if as_json:
        print_json(
            {
                "project": str(setup.project),
                "created": [str(path) for path in setup.created],
                "key": {"fingerprint": setup.fingerprint, "folder": str(setup.key_folder)},
                "notes": list(setup.notes),
                "next": _next_commands(setup, place),
            }
        )
    else:
        _print(setup, place)


def _print(setup: Setup, place: str) -> None:
    created = style("created", fg="green")
    if not setup.created:
        click.echo(f"nothing to do: {plain(str(setup.project))} is already set up")
    for path in setup.created:
        line = display(path)
        if path == setup.key_folder:
            line = f"{line} with your key {setup.fingerprint}; keep it private"
        elif path.is_file():
            line = f"{line}, signed with your key"
        click.echo(f"{created} {line}")
    for note in setup.notes:
        click.echo(f"note: {plain(note)}", err=True)
    click.echo("\nNext:")
    for line in _next_commands(setup, place):
        click.echo(f"  {style(plain(line), bold=True)}")


def _next_commands(setup: Setup, place: str) -> list[str]:
    """Return two commands that work from the current directory, in this order."""
    first = "rye list"
    if setup.first_tool is not None:
        first = f"rye run {shlex.quote(setup.first_tool)} name=you"
    if setup.project != Path.cwd().resolve():
        return [f"cd {shlex.quote(place)}", first]
    second = "rye verify" if setup.first_tool is None else f"rye show {setup.first_tool}"
    return [first, second]
