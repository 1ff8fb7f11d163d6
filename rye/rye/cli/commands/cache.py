"""``rye cache``: the stored copies of what ran, and removing old ones."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import click

from rye.cli.invocation import Invocation
from rye.cli.output.printing import display, echo, plain, print_json, print_table

if TYPE_CHECKING:
    from rye.closure.pruning import Kept

_UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"))
_DIGITS = 12


@click.group(invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Show the stored closures, the last used one first.

    A closure is a private copy of everything that was verified for a tool: calls run it, and an
    older one can be run again. Removing it is always safe. Closures that were not used for 30 days,
    and the oldest above 1 GiB, are removed once a day.

    \b
    Examples:
      rye cache
      rye cache prune --older-than 7d
      rye cache prune --all
    """
    if ctx.invoked_subcommand is not None:
        return
    from rye.closure.pruning import kept_closures
    from rye.closure.store import store_of

    store = store_of(ctx.obj.context)
    kept = kept_closures(store.folder)
    if as_json:
        print_json([_fields(one) for one in kept])
        return
    print_table(
        [
            (one.digest[:_DIGITS], plain(_tool(one)), size_text(one.size), _date(one))
            for one in kept
        ],
        styles=({"bold": True}, {}, {}, {"dim": True}),
    )
    echo(f"{_closures(kept)} in {display(store.folder)}")


@command.command("prune")
@click.option("--older-than", metavar="30d", help="Remove what was not used for that long.")
@click.option("--max-size", metavar="1GiB", help="Keep at most that much.")
@click.option("--all", "everything", is_flag=True, help="Remove all closures.")
@click.pass_obj
def prune(
    invocation: Invocation, older_than: str | None, max_size: str | None, everything: bool
) -> None:
    """Remove stored closures; without options, those that are removed once a day anyway.

    A tool that runs at this moment may fail when it loads another of its files.

    \b
    Examples:
      rye cache prune
      rye cache prune --older-than 7d --max-size 200MiB
      rye cache prune --all
    """
    from rye.closure.pruning import MAX_AGE, MAX_BYTES
    from rye.closure.pruning import prune as remove
    from rye.closure.store import store_of

    if everything and (older_than is not None or max_size is not None):
        raise click.UsageError("--all excludes --older-than and --max-size")
    max_age = MAX_AGE if older_than is None else _seconds(older_than)
    max_bytes = MAX_BYTES if max_size is None else _bytes(max_size)
    folder = store_of(invocation.context).folder
    removed = remove(folder, max_age=0 if everything else max_age, max_bytes=max_bytes)
    echo(f"removed {_closures(removed)}")


def size_text(size: int) -> str:
    """Return a number of bytes with a unit."""
    for unit, name in _UNITS:
        if size >= unit:
            return f"{size / unit:.1f} {name}"
    return f"{size} bytes"


def _closures(kept: list[Kept]) -> str:
    count = len(kept)
    size = size_text(sum([one.size for one in kept]))
    return f"{count} {'closure' if count == 1 else 'closures'}, {size}"


def _fields(one: Kept) -> dict[str, object]:
    return {"closure": one.digest, "tool": _tool(one), "bytes": one.size, "used": _date(one)}


def _tool(one: Kept) -> str:
    """The file of the tool; empty if the copy has no readable manifest."""
    from pathlib import Path

    from rye.closure.check import MANIFEST
    from rye.closure.manifest import decode_manifest
    from rye.errors import ClosureError

    try:
        data = Path(one.folders[0], MANIFEST).read_bytes()
        tool = decode_manifest(data, one.digest).tool
    except (OSError, ClosureError):
        return ""
    return "" if tool is None else tool.path


def _date(one: Kept) -> str:
    return time.strftime("%Y-%m-%d", time.localtime(one.used))


def _seconds(text: str) -> float:
    from rye.errors import RyeError
    from rye.history.moments import duration_milliseconds

    try:
        return duration_milliseconds(text) / 1000
    except RyeError as error:
        raise click.UsageError(str(error)) from None


def _bytes(text: str) -> int:
    from rye.recording.settings import parse_size

    size = parse_size(text)
    if size is None:
        raise click.UsageError(f"{text!r} is not a size; write for example 500MiB or 1GiB")
    return size
