"""``rye verify``: who signed what, and whether that counts here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import TRUST, tell
from rye.cli.output.paths import shown
from rye.cli.output.printing import print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.cli.sign.targets import Target
    from rye.cli.sign.verification import Verification
    from rye.spaces.resolver import Resolver


@click.command()
@click.argument("targets", metavar="[ITEM|PATH|GLOB]...", nargs=-1, shell_complete=offers.targets)
@click.option("--all", "everything", is_flag=True, help="Check all spaces, not only the project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    surroundings: Surroundings, targets: tuple[str, ...], everything: bool, as_json: bool
) -> None:
    """Check who signed tools, and whether that counts here. Nothing is run.

    Without arguments the project's own files are checked. An existing file is a path; otherwise
    what has *, ? or [ in it is a glob over ids and paths; anything else is an item id.

    A file is trusted, unsigned, changed (after it was signed), forged (the key that it names did
    not sign it), signed by an untrusted key, or unreadable. The command ends with 4 unless all
    are trusted, and says what mends each of the others.

    \b
    Examples:
      rye verify
      rye verify team/hello
      rye verify --all --json
    """
    from rye.cli.output.bar import watched
    from rye.cli.sign.verification import verify_targets
    from rye.spaces.resolver import Resolver

    if targets and everything:
        raise click.UsageError("--all checks everything; leave out the items")
    context = surroundings.context
    resolver = Resolver(context)
    found = _found(targets, resolver, everything=everything)
    judged = verify_targets(found, context)
    done = [next(judged) for _ in watched(found, "verifying")]
    if as_json:
        print_json([_as_json(one) for one in done])
    else:
        _print(done, resolver)
    if not all(one.report.trusted for one in done):
        raise click.exceptions.Exit(TRUST)


def _found(targets: Sequence[str], resolver: Resolver, *, everything: bool) -> Sequence[Target]:
    from rye.cli.sign.targets import find_targets, items_of

    if targets:
        return find_targets(targets, resolver, Path.cwd(), globbed=resolver.spaces)
    return items_of(resolver, resolver.spaces if everything else resolver.spaces[:1])


def _as_json(one: Verification) -> dict[str, object]:
    report = one.report
    return {
        "item_id": report.item_id,
        "path": str(report.path),
        "state": one.state,
        "signer": one.signer or None,
        "owner": one.owner or None,
        "signed_at": (report.verdict.signed_at or None) if report.verdict else None,
        "integrity": report.verdict.content_hash if report.verdict else None,
        "error": None if report.error is None else str(report.error),
    }


def _print(done: Sequence[Verification], resolver: Resolver) -> None:
    if not done:
        click.echo(f"nothing to verify in {shown(resolver.spaces[0].tools)}")
        return
    print_table([(one.label, one.report.item_id, one.whose) for one in done])
    refused = [one.report for one in done if one.report.error is not None]
    for report in refused:
        tell(str(report.error))
    click.echo(f"\n{len(done) - len(refused)} of {len(done)} trusted", err=True)
    if any(True for _ in resolver.conflicts()):
        click.echo("note: some ids lead to no file, or to two; see: rye doctor", err=True)
