"""``rye lock``: pin a tool's chain without running it, or check all pins."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from rye.cli.completion import offers
from rye.cli.invocation import Surroundings
from rye.cli.output.errors import LOCK, exit_code, tell
from rye.cli.output.paths import near, shown
from rye.cli.output.printing import plain, print_json, print_table, style

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.executor.locks.pins import PinCheck, Pinned
    from rye.executor.pinning import Locking


@click.command()
@click.argument("items", metavar="[ITEM]...", nargs=-1, shell_complete=offers.tools)
@click.option("--update", is_flag=True, help="Replace a pin that differs.")
@click.option("--check", is_flag=True, help="Check every lockfile of the project.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def command(
    surroundings: Surroundings, items: tuple[str, ...], *, update: bool, check: bool, as_json: bool
) -> None:
    """Pin tools: each file of the chain, and what it brings along, by its content.

    Everything is verified as for a run, and nothing is run. The lockfile is written to
    .ai/lockfiles, to be committed; from then on the tool runs only as it is now. A pin that
    differs is refused, unless you say --update.

    With --check every lockfile of the project is held against the files as they are now; the
    command ends with 5 if one is violated, corrupt, or for a tool that is gone.

    \b
    Examples:
      rye lock team/hello
      rye lock --update team/hello
      rye lock --check
    """
    from rye.executor.pinning import Locking

    if check and (items or update):
        raise click.UsageError("--check checks every lockfile; leave out the rest")
    if not check and not items:
        raise click.UsageError("name the items to pin, or say --check")
    locking = Locking(surroundings.context)
    if check:
        _check(locking, as_json=as_json)
    else:
        _pin(locking, items, update=update, as_json=as_json)


def _pin(locking: Locking, items: Sequence[str], *, update: bool, as_json: bool) -> None:
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
                tell(str(error))
        else:
            done.append(_as_json(pinned))
            if not as_json:
                _tell(pinned)
    if as_json:
        print_json(done)
    if failed:
        raise click.exceptions.Exit(exit_code(type(failed[0])))


def _tell(pinned: Pinned) -> None:
    verb = {"created": "pinned", "unchanged": "pinned already", "updated": "pinned anew"}
    word = style(verb[pinned.state.value], fg="green")
    count = pinned.dependencies
    extra = f", with {count} {'file' if count == 1 else 'files'} more" if count else ""
    chain = " → ".join(pinned.chain)
    click.echo(f"{word} {plain(f'{pinned.item_id} {pinned.version}: {chain}{extra}')}")
    for change in pinned.changes:
        old, new = change.old or "not pinned", change.new or "not pinned"
        click.echo(f"  {plain(change.name)}: {plain(old)} → {plain(new)}")
    click.echo(f"  {shown(pinned.path)}")


def _as_json(pinned: Pinned) -> dict[str, object]:
    return {
        "item_id": pinned.item_id,
        "version": pinned.version,
        "path": str(pinned.path),
        "state": pinned.state.value,
        "chain": list(pinned.chain),
        "dependencies": pinned.dependencies,
        "changes": [
            {"name": one.name, "old": one.old or None, "new": one.new or None}
            for one in pinned.changes
        ],
    }


def _check(locking: Locking, *, as_json: bool) -> None:
    from rye.cli.output.bar import watched

    done = [locking.check(path) for path in watched(locking.lockfiles(), "checking")]
    if as_json:
        print_json([_check_as_json(one) for one in done])
    elif done:
        print_table([(one.state, one.item_id, one.version, near(str(one.path))) for one in done])
        for one in done:
            if one.error is not None:
                tell(str(one.error))
    else:
        click.echo("no lockfiles; pin a tool with: rye lock ITEM")
    if not all(one.good for one in done):
        raise click.exceptions.Exit(LOCK)


def _check_as_json(one: PinCheck) -> dict[str, object]:
    return {
        "item_id": one.item_id,
        "version": one.version,
        "path": str(one.path),
        "state": one.state,
        "error": None if one.error is None else str(one.error),
        "error_type": None if one.error is None else type(one.error).__name__,
    }
