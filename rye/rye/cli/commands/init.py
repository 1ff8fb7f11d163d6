"""``rye init``: a project that is ready for its first tool."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Surroundings
from rye.cli.output.paths import shown
from rye.cli.output.printing import plain, print_json, style

if TYPE_CHECKING:
    from rye.cli.new.project import Setup


@click.command()
@click.argument("folder", metavar="[DIR]", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(surroundings: Surroundings, folder: str | None, as_json: bool) -> None:
    """Set up a project in DIR, or here: folders, your key, a first tool that runs.

    What is there already stays as it is, so the command can be called again.

    \b
    Examples:
      rye init
      rye init my-project
    """
    from rye.cli.new.project import set_up
    from rye.errors import RyeError

    # Here, and not in the nearest project upwards: a folder below one may become one.
    place = str(Path(surroundings.asked or "", folder or ""))
    target = Path.cwd() / place
    try:
        target.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise RyeError(f"{target} is no folder", hint="choose another name") from None
    setup = set_up(target)
    if as_json:
        print_json(
            {
                "project": str(setup.project),
                "created": [str(path) for path in setup.created],
                "key": {"fingerprint": setup.fingerprint, "folder": str(setup.key_folder)},
                "notes": list(setup.notes),
                "next": _next(setup, place),
            }
        )
    else:
        _tell(setup, place)


def _tell(setup: Setup, place: str) -> None:
    created = style("created", fg="green")
    if not setup.created:
        click.echo(f"nothing to do: {plain(str(setup.project))} is set up already")
    for path in setup.created:
        what = shown(path)
        if path == setup.key_folder:
            what = f"{what}, your key {setup.fingerprint}; keep the folder to yourself"
        elif path.is_file():
            what = f"{what}, signed with your key"
        click.echo(f"{created} {what}")
    for note in setup.notes:
        click.echo(f"note: {plain(note)}", err=True)
    click.echo("\nNext:")
    for line in _next(setup, place):
        click.echo(f"  {style(plain(line), bold=True)}")


def _next(setup: Setup, place: str) -> list[str]:
    """Two commands that work from where the user stands, in this order."""
    first = "rye list"
    if setup.first_tool is not None:
        first = f"rye run {shlex.quote(setup.first_tool)} name=you"
    if setup.project != Path.cwd().resolve():
        return [f"cd {shlex.quote(place)}", first]
    second = "rye verify" if setup.first_tool is None else f"rye show {setup.first_tool}"
    return [first, second]
