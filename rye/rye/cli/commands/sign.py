"""``rye sign``: vouch for tools with one's own key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import exit_code, tell
from rye.cli.output.paths import near
from rye.cli.output.printing import print_json, print_table

if TYPE_CHECKING:
    from rye.cli.sign.signing import Signing


@click.command()
@click.argument(
    "targets",
    metavar="PATH|ITEM|GLOB...",
    nargs=-1,
    required=True,
    shell_complete=offers.targets,
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(surroundings: Surroundings, targets: tuple[str, ...], as_json: bool) -> None:
    """Sign tools with your key, which is made on first use.

    Read what you sign: your signature lets it run. An existing file is a path; otherwise what has
    *, ? or [ in it is a glob; anything else is an item id. A glob is held against the ids and the
    paths of the tools of the project and of the user; put it in quotes. * stays within one
    folder, ** goes through all. What you have signed as it is stays untouched.

    \b
    Examples:
      rye sign team/hello
      rye sign .ai/tools/team/hello.py
      rye sign 'team/**'
    """
    from rye.cli.output.bar import watched
    from rye.cli.sign.signing import sign_targets
    from rye.cli.sign.targets import find_targets, own_spaces
    from rye.spaces.resolver import Resolver

    context = surroundings.context
    resolver = Resolver(context)
    found = find_targets(targets, resolver, Path.cwd(), globbed=own_spaces(resolver))
    signings = sign_targets(found, context)
    done = [next(signings) for _ in watched(found, "signing")]
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
                }
                for one in done
            ]
        )
    else:
        print_table([_row(one) for one in done])
    for error in failed:
        tell(str(error))
    if failed:
        raise click.exceptions.Exit(exit_code(type(failed[0])))


def _row(one: Signing) -> tuple[str, str, str]:
    path = near(str(one.target.path))
    if not one.replaced:
        return one.state, one.target.item_id, path
    doubt = "" if one.before.report.trusted else ", who is not trusted here"
    return one.state, one.target.item_id, f"{path}, was signed by {one.before.whose}{doubt}"
