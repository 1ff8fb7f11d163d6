"""``rye history prune``, ``redact``, ``export`` and ``import``."""

from __future__ import annotations

import sys
from pathlib import Path

import click

from rye.cli.invocation import Invocation
from rye.cli.output.printing import display, echo


def add_commands(group: click.Group) -> None:
    """Add the commands that change or copy the history."""
    for one in (prune, redact, export, import_):
        group.add_command(one)


@click.command("prune")
@click.option("--older-than", metavar="30d", help="Remove runs that began longer ago.")
@click.option("--all", "everything", is_flag=True, help="Remove all runs and receipts.")
@click.pass_obj
def prune(invocation: Invocation, older_than: str | None, everything: bool) -> None:
    """Remove old runs; without options, what your config does not keep.

    \b
    Examples:
      rye history prune
      rye history prune --older-than 30d
      rye history prune --all
    """
    from rye.history.moments import duration_milliseconds
    from rye.history.store import opened
    from rye.recording.retention import apply_retention, remove_all, remove_older

    if everything and older_than is not None:
        raise click.UsageError("--all and --older-than exclude each other")
    age = None if older_than is None else duration_milliseconds(older_than)
    with opened(invocation.context) as history:
        if everything:
            removed = remove_all(history.connection)
        elif age is not None:
            removed = remove_older(history.connection, age)
        else:
            removed = apply_retention(history.connection, history.settings.retention)
    echo(f"removed {_runs(removed)}")


@click.command("redact")
@click.argument("runs", metavar="RUN...", nargs=-1, required=True)
@click.pass_obj
def redact(invocation: Invocation, runs: tuple[str, ...]) -> None:
    """Remove what could be private from runs: values, output and messages.

    Digests, times and the outcome stay, and so do receipts that were made before.

    \b
    Examples:
      rye history redact last
      rye history redact 01m7p5egdt4qtekj5pmt
    """
    from rye.history.changes import redact as remove_values
    from rye.history.store import opened

    with opened(invocation.context) as history:
        found = [history.find(run) for run in runs]
        for run_id in found:
            remove_values(history, run_id)
            echo(f"redacted {run_id}")


@click.command("export")
@click.option("--out", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
@click.option("--tool", metavar="GLOB", default="", help="Only runs of these tools.")
@click.option("--since", metavar="1d|12h|30m|DATE", help="Only runs since then.")
@click.pass_obj
def export(invocation: Invocation, out: Path | None, tool: str, since: str | None) -> None:
    """Print runs as lines of JSON, the oldest first, with their kept output.

    \b
    Examples:
      rye history export --since 7d > runs.jsonl
      rye history export --out runs.jsonl
    """
    import os

    from rye.cli.history.listing import wanted_runs
    from rye.history.changes import exported
    from rye.history.store import opened

    wanted = wanted_runs(tool, False, since, "")
    with opened(invocation.context) as history:
        lines = exported(history, wanted)
        if out is None:
            for line in lines:
                sys.stdout.write(f"{line}\n")
            return
        # Private, like the history itself.
        fd = os.open(out, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
        count = 0
        with os.fdopen(fd, "w", encoding="utf-8") as file:
            for line in lines:
                file.write(f"{line}\n")
                count += 1
    echo(f"exported {_runs(count)} to {display(out)}")


@click.command("import")
@click.argument("file", type=click.Path(exists=True, allow_dash=True, path_type=Path))
@click.pass_obj
def import_(invocation: Invocation, file: Path) -> None:
    """Add runs that were exported, as from another machine. Runs that are there stay as they are.

    \b
    Examples:
      rye history import runs.jsonl
      ssh host rye history export | rye history import -
    """
    from rye.history.changes import imported
    from rye.history.store import opened

    with (
        opened(invocation.context) as history,
        click.open_file(str(file), encoding="utf-8") as source,
    ):
        new, total = imported(history, source)
    known = f"; {total - new} were there" if new < total else ""
    echo(f"imported {_runs(new)}{known}")


def _runs(number: int) -> str:
    return f"{number:,} {'run' if number == 1 else 'runs'}"
