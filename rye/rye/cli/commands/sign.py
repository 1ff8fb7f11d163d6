"""``rye sign``: sign tools with your key."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_target
from rye.cli.invocation import Invocation
from rye.cli.output.errors import exit_code, print_error
from rye.cli.output.printing import (
    plain,
    print_changes,
    print_json,
    print_table,
    shorten_paths,
    style,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.cli.sign.signing import Signing
    from rye.context import Context
    from rye.executor.locks.pins import Pinned


@click.command()
@click.argument(
    "targets",
    metavar="PATH|ITEM|GLOB...",
    nargs=-1,
    required=True,
    shell_complete=complete_target,
)
@click.option("--no-lock", is_flag=True, help="Leave the pins of the tools as they are.")
@click.option(
    "--resolve",
    is_flag=True,
    help="Resolve merge conflicts of signature lines and lockfiles.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation,
    targets: tuple[str, ...],
    *,
    no_lock: bool,
    resolve: bool,
    as_json: bool,
) -> None:
    """Sign tools with your key, which is created on first use.

    Read what you sign: your signature allows it to run. An argument is a path if that file exists,
    a glob if it contains *, ? or [, and otherwise an item id. A glob matches the ids and paths of
    the tools in the project and user space; put it in quotes. * matches within one directory, **
    matches across directories. Files that you have already signed are not changed.

    A file that cannot run is not signed: one with a syntax error, invalid metadata or the marks of
    a merge conflict. Mistakes that `rye check` would report are printed.

    If you signed the previous content too, the lines that changed since are shown, and the pin of
    the tool in this project is updated, unless you pass --no-lock. The pin of a tool that somebody
    else signed stays: review it, then run `rye lock --update`.

    After a merge, first merge the content of a tool. --resolve then removes conflicting signature
    lines, signs the file, and pins the tool again.

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
    if resolve:
        from rye.authoring.conflicts import resolve_signatures

        for target in found:
            resolve_signatures(target.path, target.root)
    signings = sign_targets(found, context)
    done = [next(signings) for _ in with_progress_bar(found, "signing")]
    if resolve:
        _pin_again(done, context, as_json=as_json)
    report(done, context, no_lock=no_lock, as_json=as_json)


def _pin_again(done: Sequence[Signing], context: Context, *, as_json: bool) -> None:
    """Replace the lockfiles of the signed tools that are in conflict, or that a merge left over."""
    from rye.authoring.conflicts import pins_in_conflict
    from rye.executor.pinning import Locking

    signed = [one.target.item_id for one in done if one.signed is not None]
    for item_id in pins_in_conflict(signed, context):
        pinned = Locking(context).pin(item_id, update=True)
        if not as_json:
            _print_pin(pinned)


def report(done: Sequence[Signing], context: Context, *, no_lock: bool, as_json: bool) -> None:
    """Update the pins, print everything, and exit with the code of the first error."""
    from rye.authoring.signing import follow_with_pins, stale_pins

    signed = [one.signed for one in done if one.signed is not None]
    updated = [] if no_lock else list(follow_with_pins(signed, context))
    stale = stale_pins(signed, context, updated)
    failed = [one.error for one in done if one.error is not None]
    if as_json:
        print_json([_json(one, updated) for one in done])
    else:
        print_table([_row(one) for one in done])
        for one in signed:
            print_changes(one.changes)
        for pin in updated:
            _print_pin(pin)
    for one in signed:
        for message in one.mistakes:
            print_error(message)
    for item_id in stale:
        click.echo(
            f"note: the pin of {plain(item_id)} is of other content; "
            f"to accept this one, run: rye lock --update {plain(item_id)}",
            err=True,
        )
    for error in failed:
        print_error(str(error))
    if failed:
        raise click.exceptions.Exit(exit_code(type(failed[0])))


def _print_pin(pin: Pinned) -> None:
    click.echo(f"{style('updated pin', fg='green')} {plain(pin.item_id)} {plain(pin.version)}")
    for more in pin.widened:
        click.echo(style(f"  now also: {plain(more)}", fg="yellow"))


def _json(one: Signing, updated: Sequence[Pinned]) -> dict[str, object]:
    signed = one.signed
    return {
        "item_id": one.target.item_id,
        "path": str(one.target.path),
        "state": one.state,
        "signer": signed.item.fingerprint if signed else None,
        "integrity": signed.item.content_hash if signed else None,
        "replaced": one.replaced or None,
        "error": None if one.error is None else str(one.error),
        "mistakes": list(signed.mistakes) if signed else [],
        "changes": list(signed.changes) if signed else [],
        "pin_updated": any(pin.item_id == one.target.item_id for pin in updated),
    }


def _row(one: Signing) -> tuple[str, str, str]:
    path = shorten_paths(str(one.target.path))
    if not one.replaced:
        return one.state, one.target.item_id, path
    untrusted = "" if one.before.report.trusted else " (untrusted)"
    replaced = f"replaces the signature of {one.before.signer_and_owner}{untrusted}"
    return one.state, one.target.item_id, f"{path}, {replaced}"
