"""``rye history``: what ran, and how it ended."""

from __future__ import annotations

import click

from rye.cli.commands.history_manage import add_commands
from rye.cli.completion import complete_item
from rye.cli.history.listing import list_runs, wanted_runs
from rye.cli.history.request import ListRequest
from rye.cli.invocation import Invocation
from rye.cli.output.printing import echo, print_json


@click.group(invoke_without_command=True)
@click.option("--tool", metavar="GLOB", default="", help="Only runs of these tools.")
@click.option("--failed", is_flag=True, help="Only runs that did not succeed.")
@click.option("--since", metavar="1d|12h|30m|DATE", help="Only runs since then.")
@click.option("--by", metavar="CLIENT", default="", help="Only runs by this client or token.")
@click.option("--limit", metavar="N", type=click.IntRange(min=1), help="At most N runs.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, without a limit by default.")
@click.pass_context
def command(  # noqa: PLR0917 - click passes the arguments by their names
    ctx: click.Context,
    tool: str,
    failed: bool,
    since: str | None,
    by: str,
    limit: int | None,
    as_json: bool,
) -> None:
    """Show what ran, the newest first: by you, by agents and by programs.

    RUN is the id of a run, its first or last characters, or `last`.

    \b
    Examples:
      rye history
      rye history --tool 'rye/bash/*' --failed --since 1d
      rye history --by claude-code --json
      rye history show last
      rye history stats
      rye history prune --older-than 30d
    """
    if ctx.invoked_subcommand is not None:
        return
    request = ListRequest(
        tool=tool, failed=failed, since=since, by=by, limit=limit, as_json=as_json
    )
    raise SystemExit(list_runs(request, ctx.obj))


@command.command("show")
@click.argument("run", metavar="RUN")
@click.option("--json", "as_json", is_flag=True, help="Print the whole record as JSON.")
@click.pass_obj
def show(invocation: Invocation, run: str, as_json: bool) -> None:
    """Show everything that is known about a run.

    \b
    Examples:
      rye history show last
      rye history show 01m7p5egdt4qtekj5pmt --json
    """
    from rye.cli.output.history_page import record_page
    from rye.history.store import opened

    with opened(invocation.context) as history:
        run_id = history.find(run)
        record = history.whole(run_id) if as_json else history.record(run_id)
        kept = sorted(history.outputs(run_id))
    if as_json:
        print_json(record)
    else:
        echo(record_page(record, kept))


@command.command("stats")
@click.option("--tool", metavar="GLOB", default="", shell_complete=complete_item)
@click.option("--since", metavar="1d|12h|30m|DATE", help="Only runs since then.")
@click.option("--by", metavar="CLIENT", default="", help="Only runs by this client or token.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def stats(invocation: Invocation, tool: str, since: str | None, by: str, as_json: bool) -> None:
    """Show calls, failures and durations of each tool.

    p50 is the duration that half of the calls did not exceed, p95 that of 95 in 100.

    \b
    Examples:
      rye history stats
      rye history stats --since 7d --json
    """
    from rye.cli.output.history_page import print_statistics
    from rye.history.query import statistics
    from rye.history.store import opened

    with opened(invocation.context) as history:
        found = statistics(history.connection, wanted_runs(tool, False, since, by))
    if as_json:
        print_json([one._asdict() for one in found])
    else:
        print_statistics(found)


add_commands(command)
