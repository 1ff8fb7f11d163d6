"""``rye verify``: check the signatures of tools."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_target
from rye.cli.invocation import Invocation
from rye.cli.output.errors import TRUST, print_error
from rye.cli.output.printing import display, print_json, print_table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.cli.sign.signing import Verification
    from rye.cli.sign.targets import Target
    from rye.spaces.resolver import Resolver


@click.command()
@click.argument("targets", metavar="[ITEM|PATH|GLOB]...", nargs=-1, shell_complete=complete_target)
@click.option("--all", "everything", is_flag=True, help="Check all spaces, not only the project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation, targets: tuple[str, ...], everything: bool, as_json: bool
) -> None:
    """Check the signatures of tools. Nothing is run.

    Without arguments, all files in the project's .ai/tools are checked. An argument is a path if
    that file exists, a glob over ids and paths if it contains *, ? or [, and otherwise an item id.

    A file is trusted, unsigned, changed (since it was signed), forged (the named key did not sign
    it), signed by an untrusted key, or unreadable. For each file that is not trusted, the fix is
    printed. The exit code is 4 unless all files are trusted.

    \b
    Examples:
      rye verify
      rye verify team/hello
      rye verify --all --json
    """
    from rye.cli.output.progress import with_progress_bar
    from rye.cli.sign.signing import verify_targets
    from rye.spaces.resolver import Resolver

    if targets and everything:
        raise click.UsageError("--all checks everything; pass no items")
    context = invocation.context
    resolver = Resolver(context)
    found = _find(targets, resolver, everything=everything)
    verifications = verify_targets(found, context)
    done = [next(verifications) for _ in with_progress_bar(found, "verifying")]
    if as_json:
        print_json([_as_json(one) for one in done])
    else:
        _print(done, resolver)
    if not all(one.report.trusted for one in done):
        raise click.exceptions.Exit(TRUST)


def _find(targets: Sequence[str], resolver: Resolver, *, everything: bool) -> Sequence[Target]:
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
        click.echo(f"nothing to verify in {display(resolver.spaces[0].tools)}")
        return
    print_table([(one.label, one.report.item_id, one.signer_and_owner) for one in done])
    refused = [one.report for one in done if one.report.error is not None]
    for report in refused:
        print_error(str(report.error))
    click.echo(f"\n{len(done) - len(refused)} of {len(done)} trusted", err=True)
    if any(True for _ in resolver.conflicts()):
        click.echo("note: some ids are ambiguous or have no file; see: rye doctor", err=True)
