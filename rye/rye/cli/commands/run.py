"""`rye run`."""

from __future__ import annotations

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.run.request import RunRequest


class RunCommand(click.Command):
    """A parameter that was written like an option is told how to write it."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = tuple(args)
        try:
            return super().parse_args(ctx, args)
        except click.NoSuchOption as error:
            option = error.option_name
            if not any(arg.startswith(f"{option}=") for arg in given):
                raise
            name = option.lstrip("-")
            message = f"no such option {option!r}; write {name}=… for a parameter of the tool"
            raise click.UsageError(message, ctx) from None


@click.command(cls=RunCommand)
@click.argument("item_id", metavar="ITEM", shell_complete=offers.tools)
@click.argument("pairs", metavar="[KEY=VALUE]...", nargs=-1, shell_complete=offers.pairs)
@click.option("--params", metavar="JSON|@FILE|-", help="All parameters as one JSON object.")
@click.option("--json", "as_json", is_flag=True, help="Print the whole result as JSON.")
@click.option("--timeout", type=float, metavar="SECONDS", help="End the tool after this time.")
@click.option("--dry-run", is_flag=True, help="Check everything and show what would run.")
@click.option("--frozen", is_flag=True, help="Refuse a tool that is not pinned by a lockfile.")
@click.pass_obj
def command(  # noqa: PLR0917 - click passes the arguments by their names
    surroundings: Surroundings,
    item_id: str,
    pairs: tuple[str, ...],
    params: str | None,
    as_json: bool,
    timeout: float | None,
    dry_run: bool,
    frozen: bool,
) -> None:
    """Run a tool.

    Parameters are written KEY=VALUE and read as the tool's schema says: n=3 is a number where it
    wants one, and text where it wants text. Arrays and objects are written as JSON; a repeated
    KEY makes an array. KEY=VALUE goes before --params.

    What the tool prints appears as it comes. Two things are made readable: a single JSON text is
    shown as that text, and on a terminal JSON is indented.

    Exit codes: 0 success, 2 wrong usage or parameters, 3 not found, 4 refused because of its
    signature, 5 refused by its lockfile, 124 timeout, 130 Ctrl-C; else the tool's own, or 1.

    \b
    Examples:
      rye run rye/bash/bash command='echo hello'
      rye run rye/fs/grep pattern=TODO path=.
      echo '{"command": "date"}' | rye run rye/bash/bash --params -
      rye run rye/bash/bash command='sleep 9' --timeout 2
      rye run rye/bash/bash command=date --dry-run
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
    )
    raise SystemExit(run(request, surroundings))
