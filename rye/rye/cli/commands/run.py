"""``rye run``: the arguments for click, and the help."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from rye.cli.completion import complete_option_of_tool, complete_parameter, complete_tool
from rye.cli.invocation import Invocation
from rye.cli.output.printing import echo
from rye.cli.run.request import HELP, VALUE_OPTIONS, RunRequest, split_arguments


class RunCommand(click.Command):
    """Takes options after the tool for its parameters, and shows the help of a tool."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        own, words = split_arguments(args)
        if words and not HELP.isdisjoint(own) and not ctx.resilient_parsing:
            _print_help(ctx.ensure_object(Invocation), words[0])
            ctx.exit()
        # After an option without its value, click would take the separator for the value.
        incomplete = bool(own) and own[-1] in VALUE_OPTIONS
        return super().parse_args(ctx, own if incomplete else [*own, "--", *words])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        own = super().shell_complete(ctx, incomplete)
        return own + complete_option_of_tool(ctx, incomplete)


def _print_help(invocation: Invocation, item_id: str) -> None:
    from rye.catalogue.catalogue import Catalogue
    from rye.cli.output.tool_help import help_of

    echo(help_of(Catalogue(invocation.context).entry(item_id)))


@click.command(cls=RunCommand)
@click.argument("item_id", metavar="ITEM", shell_complete=complete_tool)
@click.argument(
    "pairs", metavar="[KEY=VALUE|--KEY VALUE]...", nargs=-1, shell_complete=complete_parameter
)
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
@click.option("-q", "quiet", is_flag=True, help="Print only the tool's output and errors.")
@click.option("-v", "verbose", is_flag=True, help="Say what runs, and why it is trusted.")
@click.option("--debug", is_flag=True, help="Also say how it was found, and the time of each step.")
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
    quiet: bool,
    verbose: bool,
    debug: bool,
) -> None:
    """Run a tool. `rye run ITEM --help` shows its parameters.

    Parameters are written as KEY=VALUE or --KEY VALUE. The tool's schema decides the type: n=3
    passes a number if the tool expects one, and otherwise a string. Write arrays and objects as
    JSON, or repeat KEY to make an array. --KEY alone is true, --no-KEY is false. These parameters
    override --params.

    KEY=@FILE passes the text of a file, KEY=- that of stdin, KEY=@@… a text that begins with @. A
    script that passes a text of unknown origin uses --KEY=VALUE, which is passed as it is. The
    options below are Rye's own; after -- they are parameters too.

    A tool that declares `stdin: true` reads the stdin of this command.

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
      rye run rye/fs/grep --help
      rye run rye/fs/grep pattern=TODO --path .
      rye run rye/fs/write path=copy.md content=@README.md
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
        quiet=quiet,
        verbose=verbose,
        debug=debug,
    )
    raise SystemExit(run(request, invocation))
