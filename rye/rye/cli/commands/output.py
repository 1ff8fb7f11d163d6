"""``rye output``: what a recorded run printed."""

from __future__ import annotations

import sys

import click

from rye.cli.invocation import Invocation


@click.command
@click.argument("run", metavar="RUN")
@click.option("--stream", type=click.Choice(["stdout", "stderr", "body"]), help="Only this one.")
@click.pass_obj
def command(invocation: Invocation, run: str, stream: str | None) -> None:
    """Print the output of a run again, if it was kept.

    Output is kept for the tools that `history.keep.output` in ~/.ai/config.yaml lists. It is
    written as it was: stdout to stdout, stderr to stderr. With --stream, one of them is written to
    stdout.

    \b
    Examples:
      rye output last
      rye output 01m7p5egdt4qtekj5pmt --stream stderr
    """
    from rye.errors import HistoryError
    from rye.history.store import opened

    with opened(invocation.context) as history:
        run_id = history.find(run)
        outputs = history.outputs(run_id)
        item = history.record(run_id)["item"]
    wanted = {name: data for name, data in outputs.items() if stream in (None, name)}
    if not wanted:
        raise HistoryError(
            f"the output of run {run_id} was not kept",
            hint=f"keep it from now on by {item!r} in history.keep.output of ~/.ai/config.yaml",
        )
    for name, data in wanted.items():
        target = sys.stderr if name == "stderr" and stream is None else sys.stdout
        target.flush()
        target.buffer.write(data)
        target.buffer.flush()
