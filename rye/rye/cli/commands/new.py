"""``rye new``: create a tool from a template."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_runtime
from rye.cli.invocation import Invocation
from rye.cli.new.templates import TEMPLATES
from rye.cli.output.printing import display, plain, print_json, shorten_paths, style

if TYPE_CHECKING:
    from rye.cli.new.tool import NewTool
    from rye.spaces.model import SpaceName

_RUNTIMES = "\n".join(f"      {each.name:<14} {each.summary}" for each in TEMPLATES)

_HELP = f"""Create a signed tool from a template, ready to run.

    NAME is the tool's id: team/hello is the file .ai/tools/team/hello with the extension of its
    language. An existing tool is never overwritten.

    \b
    Runtimes:
{_RUNTIMES}

    For another interpreter, such as perl or ruby, and for the id of any other runtime, the file
    contains only the metadata.

    \b
    Examples:
      rye new hello
      rye new team/backup --runtime bash --description 'Copies the notes to the backup disk'
      rye new weather --runtime http --space user
    """


@click.command(help=_HELP)
@click.argument("name")
@click.option(
    "--runtime",
    "-r",
    metavar="RUNTIME",
    default="python",
    show_default=True,
    shell_complete=complete_runtime,
    help="One of the runtimes above, or the id of another.",
)
@click.option(
    "--space",
    type=click.Choice(["project", "user"]),
    default="project",
    show_default=True,
    help="Create the tool in this project, or for all your projects.",
)
@click.option("--description", "-d", default="", help="What the tool does, in one line.")
@click.option(
    "--extension", metavar="EXT", help="The file extension, if the runtime has no template."
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation,
    *,
    name: str,
    runtime: str,
    space: SpaceName,
    description: str,
    extension: str | None,
    as_json: bool,
) -> None:
    from rye.cli.new.tool import find_template, new_tool
    from rye.spaces.resolver import Resolver

    context = invocation.context
    resolver = Resolver(context)
    template = find_template(runtime, resolver, extension)
    made = new_tool(name, template, context, resolver, space=space, description=description)
    if as_json:
        print_json(
            {
                "item_id": made.item_id,
                "path": str(made.path),
                "space": space,
                "executor_id": template.executor_id,
                "signer": made.fingerprint,
                "problem": made.problem or None,
            }
        )
    else:
        _print(made)


def _print(made: NewTool) -> None:
    click.echo(f"{style('created', fg='green')} {display(made.path)}, signed with your key")
    item = shlex.quote(made.item_id)
    if made.hidden_by is not None:
        click.echo(
            f"note: '{plain(made.item_id)}' still runs {display(made.hidden_by.path)} here",
            err=True,
        )
    elif made.replaces is not None:
        click.echo(
            f"note: '{plain(made.replaces.asked)}' no longer runs {display(made.replaces.path)}",
            err=True,
        )
    if made.problem:
        click.echo(f"note: it cannot run here yet: {plain(shorten_paths(made.problem))}", err=True)
    if made.problem:
        first = f"rye check {item}"
    elif made.template.source:
        first = f"rye show {item}"
    else:
        first = f"rye run {item} {shlex.quote(made.template.example)}"
    click.echo("\nNext:")
    click.echo(f"  {style(plain(first), bold=True)}")
    click.echo(f"  {style(plain(f'rye sign {item}'), bold=True)}   after every change")
