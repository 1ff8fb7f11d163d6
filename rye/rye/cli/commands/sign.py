"""``rye sign``: sign tools with your key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_target
from rye.cli.invocation import Invocation
from rye.cli.output.errors import exit_code, print_error
from rye.cli.output.printing import print_json, print_table, shorten_paths

if TYPE_CHECKING:
    from rye.cli.sign.signing import Signing


@click.command()
@click.argument(
    "targets",
    metavar="PATH|ITEM|GLOB...",
    nargs=-1,
    required=True,
    shell_complete=complete_target,
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(invocation: Invocation, targets: tuple[str, ...], as_json: bool) -> None:
    """Sign tools with your key, which is created on first use.

    Read what you sign: your signature allows it to run. An argument is a path if that file exists,
    a glob if it contains *, ? or [, and otherwise an item id. A glob matches the ids and paths of
    the tools in the project and user space; put it in quotes. * matches within one directory, **
    matches across directories. Files that you have already signed are not changed.

    A file that cannot run is not signed: one with a syntax error, invalid metadata or the marks of
    a merge conflict. Mistakes that `rye check` would report are printed.

    \b
    Examples:
      rye sign team/hello
      rye sign .ai/tools/team/hello.py
      rye sign 'team/**'
    """
    from rye.cli.output.progress import with_progress_bar
    from rye.cli.sign.signing import sign_targets
    from rye.cli.sign.targets import find_targets, own_spaces
    from rye.spaces.resolver import Resolver

    context = invocation.context
    resolver = Resolver(context)
    found = find_targets(targets, resolver, Path.cwd(), globbed=own_spaces(resolver))
    signings = sign_targets(found, context)
    done = [next(signings) for _ in with_progress_bar(found, "signing")]
    failed = [one.error for one in done if one.error is not None]
    if as_json:
        print_json(
            [
                {
                    "item_id": one.target.item_id,
                    "path": str(one.target.path),
                    "state": one.state,
                    "signer": one.signed.fingerprint if one.signed else None,
                    "integrity": one.signed.content_hash if one.signed else None,
                    "replaced": one.replaced or None,
                    "error": None if one.error is None else str(one.error),
                    "mistakes": list(one.mistakes),
                }
                for one in done
            ]
        )
    else:
        print_table([_row(one) for one in done])
    for one in done:
        for message in one.mistakes:
            print_error(message)
    for error in failed:
        print_error(str(error))
    if failed:
        raise click.exceptions.Exit(exit_code(type(failed[0])))


def _row(one: Signing) -> tuple[str, str, str]:
    path = shorten_paths(str(one.target.path))
    if not one.replaced:
        return one.state, one.target.item_id, path
    untrusted = "" if one.before.report.trusted else " (untrusted)"
    replaced = f"replaces the signature of {one.before.signer_and_owner}{untrusted}"
    return one.state, one.target.item_id, f"{path}, {replaced}"
