"""``rye config``: every setting, its value, and where it comes from."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.errors import print_error
from rye.cli.output.printing import plain, print_json, print_table, shorten_paths
from rye.errors import ItemNotFoundError

if TYPE_CHECKING:
    from rye.cli.config.settings import Setting


@click.command()
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print JSON, with what each setting is for.")
@click.pass_obj
def command(invocation: Invocation, name: str | None, as_json: bool) -> None:
    """Show every setting, its value, and where the value comes from.

    With NAME, only the value of that setting. Settings are in your ~/.ai/config.yaml, in the
    project's .ai/config.yaml, and in the environment. Nothing is changed, and secrets are not
    shown.

    \b
    Examples:
      rye config
      rye config permissions.unenforced
      rye config --json
    """
    from rye.cli.config.settings import settings

    found = list(settings(invocation))
    if name is not None:
        found = [one for one in found if one.name == name]
        if not found:
            raise ItemNotFoundError(
                f"there is no setting {name!r}", hint="list the settings with: rye config"
            )
    if as_json:
        print_json([one._asdict() for one in found])
    elif name is not None:
        for one in found:
            click.echo(_text(one))
    else:
        print_table(
            [(one.name, _text(one), shorten_paths(one.source)) for one in found],
            styles=({"bold": True}, {}, {"dim": True}),
        )
    for problem in dict.fromkeys([one.problem for one in found if one.problem]):
        print_error(problem)


def _text(setting: Setting) -> str:
    value = setting.value
    if value is None or value == []:
        return "-"
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    return shorten_paths(plain(text))
