"""``rye edit``: open a tool in your editor, then check, sign and pin it again."""

from __future__ import annotations

import os
import shlex
import subprocess
from pathlib import Path

import click

from rye.cli.completion import complete_item
from rye.cli.invocation import Invocation
from rye.cli.output.printing import display
from rye.errors import RyeError

_EDITORS = ("sensible-editor", "nano", "vi")


@click.command()
@click.argument("item", shell_complete=complete_item)
@click.option("--no-lock", is_flag=True, help="Leave the pin of the tool as it is.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, item: str, *, no_lock: bool, as_json: bool) -> None:
    """Open ITEM in your editor, then check it, sign it and update its pin.

    The editor is $VISUAL or $EDITOR. After it ends, `rye sign` does the rest: a file that cannot
    run is not signed, the lines that changed are shown, and the pin of your own tool follows. If
    nothing was changed, nothing happens.

    \b
    Examples:
      rye edit team/hello
      EDITOR='code --wait' rye edit team/hello
    """
    from rye.cli.commands.sign import report
    from rye.cli.sign.signing import sign_targets
    from rye.cli.sign.targets import find_targets, own_spaces
    from rye.spaces.resolver import Resolver

    context = invocation.context
    resolver = Resolver(context)
    targets = find_targets([item], resolver, Path.cwd(), globbed=own_spaces(resolver))
    path = targets[0].path
    if targets[0].root not in [space.root for space in own_spaces(resolver)]:
        raise RyeError(
            f"{item!r} is not a tool of the project or the user: {path}",
            hint="copy it to .ai/tools to change it",
        )
    before = path.read_bytes()
    _edit(path)
    if path.read_bytes() == before:
        click.echo(f"nothing changed: {display(path)}", err=True)
        return
    report(list(sign_targets(targets, context)), context, no_lock=no_lock, as_json=as_json)


def _edit(path: Path) -> None:
    words = _editor()
    try:
        code = subprocess.run([*words, str(path)], check=False).returncode
    except OSError as error:
        raise RyeError(
            f"the editor {words[0]!r} cannot be started ({(error.strerror or '').lower()})",
            hint="set EDITOR to a program that is installed",
        ) from None
    if code != 0:
        raise RyeError(
            f"the editor {words[0]!r} ended with exit code {code}, and {path} was not signed",
            hint=f"sign it with: rye sign {shlex.quote(str(path))}",
        )


def _editor() -> list[str]:
    from shutil import which

    given = os.environ.get("VISUAL") or os.environ.get("EDITOR") or ""
    try:
        words = shlex.split(given)
    except ValueError:
        words = []
    if words:
        return words
    found = next(filter(which, _EDITORS), None)
    if found is None:
        raise RyeError("no editor was found", hint="set EDITOR, for example: export EDITOR=nano")
    return [found]
