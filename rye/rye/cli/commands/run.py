"""``rye run``: the arguments for click, and the help."""

from __future__ import annotations

import click

from rye.cli.completion import complete_parameter, complete_tool
from rye.cli.invocation import Invocation
from rye.cli.run.request import RunRequest


class RunCommand(click.Command):
    """Adds a hint to the error if a parameter of the tool was written like an option."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            if not any(arg.startswith(f"{option}=") for arg in given):
                raise
            name = option.lstrip("-")
            message = f"no such option {option!r}; to pass a parameter, write {name}=…"
            raise click.UsageError(message, ctx) from None


@click.command(cls=RunCommand)
@click.argument("item_id", metavar="ITEM", shell_complete=complete_tool)
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1, shell_complete=complete_parameter)
@click.option("--params", metavar="JSON|@FILE|-", help="Parameters as a JSON object.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--timeout", type=float, metavar="SECONDS", help="End the tool after this time.")
@click.option("--dry-run", is_flag=True, help="Check everything and show what would run.")
@click.option("--frozen", is_flag=True, help="Refuse to run a tool without a lockfile.")
@click.option(
    "--allow",
    multiple=True,
    metavar="net|read=PATH|write=PATH|run=NAME|env=NAME|unenforced",
    help="Let a confined tool do more in this call. Repeatable.",
)
@click.pass_obj
def command(  # noqa: PLR0917 - click passes the arguments by their names
    invocation: Invocation,
    item_id: str,
    pairs: tuple[str, ...],
    params: str | None,
    as_json: bool,
    timeout: float | None,
    dry_run: bool,
    frozen: bool,
    allow: tuple[str, ...],
) -> None:
    """Run a tool.

    Parameters are written as KEY=VALUE. The tool's schema decides the type: n=3 passes a number if
    the tool expects one, and otherwise a string. Write arrays and objects as JSON, or repeat KEY to
    make an array. KEY=VALUE overrides --params.

    The tool's output is shown as it arrives. If it is a single JSON string, the string itself is
    shown. On a terminal, JSON is indented.

    A tool that declares permissions is confined to them; --allow widens them for this call, and
    `--allow unenforced` accepts that this machine cannot enforce them all.

    Exit codes: 0 success, 2 wrong usage or parameters, 3 not found, 4 refused because of a
    signature or of permissions, 5 refused because of a lockfile, 124 timeout, 130 Ctrl-C; otherwise
    the tool's exit code, or 1.

    \b
    Examples:
      rye run rye/bash/bash command='echo hello'
      rye run rye/fs/grep pattern=TODO path=.
      echo '{"command": "date"}' | rye run rye/bash/bash --params -
      rye run rye/bash/bash command='sleep 9' --timeout 2
      rye run rye/bash/bash command=date --dry-run
      rye run --allow net rye/bash/bash command='curl https://example.org'
    """
    from rye.cli.run.run import run

    request = RunRequest(
        item_id=item_id,
        pairs=pairs,
        params=params,
        json=as_json,
        timeout=timeout,
        dry_run=dry_run,
        frozen=frozen,
        allow=allow,
    )
    raise SystemExit(run(request, invocation))
