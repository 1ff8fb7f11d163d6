"""``rye lock``: pin tools without running them, or check all pins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.completion import complete_tool
from rye.cli.invocation import Invocation
from rye.cli.output.errors import LOCK, exit_code, print_error
from rye.cli.output.printing import (
    display,
    plain,
    print_changes,
    print_json,
    print_table,
    short_list,
    shorten_paths,
    style,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.context import Context
    from rye.executor.locks.pins import PinCheck, Pinned
    from rye.executor.pinning import Locking

_VERBS = {"created": "pinned", "unchanged": "already pinned", "updated": "updated pin"}


@click.command()
@click.argument("items", metavar="[ITEM]...", nargs=-1, shell_complete=complete_tool)
@click.option("--update", is_flag=True, help="Replace a pin that does not match.")
@click.option("--all", "everything", is_flag=True, help="With --update: every pinned tool.")
@click.option("--check", is_flag=True, help="Check every lockfile of the project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    invocation: Invocation,
    items: tuple[str, ...],
    *,
    update: bool,
    everything: bool,
    check: bool,
    as_json: bool,
) -> None:
    """Pin tools to the current content of every file in their chain.

    The chain is verified as for a run, but nothing is run. The pin is a lockfile in .ai/lockfiles;
    commit it. From then on the tool runs only with exactly this content. If the content changed
    since, the pin is kept and the command fails, unless you pass --update.

    A tool has one pin. Another version of it, newer or older, is a change like any other; --update
    replaces the pin and removes the lockfile of the other version. It shows the lines that changed
    if the pinned content was signed or run on this machine. --update --all updates every pin whose
    tool exists; the pins that match stay as they are.

    With --check, every lockfile of the project is compared with the current files: ok, mismatch,
    leftover (the tool has several), corrupt, or missing (the tool does not exist). The exit code is
    5 unless all are ok.

    \b
    Examples:
      rye lock team/hello
      rye lock --update team/hello
      rye lock --update --all
      rye lock --check
    """
    from rye.executor.pinning import Locking

    if check and (items or update or everything):
        raise click.UsageError("--check checks every lockfile; pass nothing else")
    if everything and (items or not update):
        raise click.UsageError("--all goes with --update, without tools")
    if not check and not items and not everything:
        raise click.UsageError("pass the tools to pin, --update --all, or --check")
    locking = Locking(invocation.context)
    if check:
        _check(locking, as_json=as_json)
        return
    wanted = locking.pinned_items() if everything else items
    _pin(locking, wanted, invocation.context, update=update, as_json=as_json)


def _pin(
    locking: Locking, items: Sequence[str], context: Context, *, update: bool, as_json: bool
) -> None:
    from rye.authoring.changes import changes_of_pin
    from rye.errors import RyeError

    done: list[dict[str, object]] = []
    failed: list[RyeError] = []
    for item in items:
        try:
            pinned = locking.pin(item, update=update)
        except RyeError as error:
            failed.append(error)
            done.append({"item_id": item, "state": "failed", "error": str(error)})
            if not as_json:
                print_error(str(error))
        else:
            lines = changes_of_pin(pinned, context)
            done.append({**_pin_json(pinned), "lines": list(lines)})
            if not as_json:
                _print_pin(pinned, lines)
    if as_json:
        print_json(done)
    if failed:
        raise click.exceptions.Exit(exit_code(type(failed[0])))


def _print_pin(pinned: Pinned, lines: Sequence[str]) -> None:
    verb = style(_VERBS[pinned.state.value], fg="green")
    count = pinned.dependencies
    more = f" (and {count} supporting {'file' if count == 1 else 'files'})" if count else ""
    chain = " → ".join(pinned.chain)
    click.echo(f"{verb} {plain(f'{pinned.item_id} {pinned.version}: {chain}{more}')}")
    if pinned.unsigned:
        click.echo(f"  files of the project, not signed: {plain(short_list(pinned.unsigned))}")
    for change in pinned.changes:
        old, new = change.old or "not pinned", change.new or "not pinned"
        click.echo(f"  {plain(change.name)}: {plain(old)} → {plain(new)}")
    print_changes(lines)
    for more in pinned.widened:
        click.echo(style(f"  now also: {plain(more)}", fg="yellow"))
    click.echo(f"  {display(pinned.path)}")


def _pin_json(pinned: Pinned) -> dict[str, object]:
    return {
        "item_id": pinned.item_id,
        "version": pinned.version,
        "path": str(pinned.path),
        "state": pinned.state.value,
        "chain": list(pinned.chain),
        "dependencies": pinned.dependencies,
        "unsigned": list(pinned.unsigned),
        "changes": [
            {"name": one.name, "old": one.old or None, "new": one.new or None}
            for one in pinned.changes
        ],
        "widened": list(pinned.widened),
    }


def _check(locking: Locking, *, as_json: bool) -> None:
    from rye.cli.output.progress import with_progress_bar

    paths = with_progress_bar(locking.lockfiles(), "checking")
    done = [locking.check(path) for path in paths]
    if as_json:
        print_json([_check_json(one) for one in done])
    elif done:
        print_table(
            [(one.state, one.item_id, one.version, shorten_paths(str(one.path))) for one in done]
        )
        # The leftovers of a tool have one error.
        for error in dict.fromkeys(str(one.error) for one in done if one.error is not None):
            print_error(error)
    else:
        click.echo("no lockfiles; pin a tool with: rye lock ITEM")
    if not all(one.good for one in done):
        raise click.exceptions.Exit(LOCK)


def _check_json(one: PinCheck) -> dict[str, object]:
    return {
        "item_id": one.item_id,
        "version": one.version,
        "path": str(one.path),
        "state": one.state,
        "error": None if one.error is None else str(one.error),
        "error_type": None if one.error is None else type(one.error).__name__,
    }
