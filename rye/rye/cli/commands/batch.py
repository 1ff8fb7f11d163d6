"""``rye batch``: one tool, many calls, safe to interrupt."""

from __future__ import annotations

import asyncio
import os
import shlex
import signal
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from rye.cli.completion import complete_item
from rye.cli.invocation import Invocation
from rye.cli.output.errors import print_error
from rye.cli.output.printing import echo, plain, print_json

if TYPE_CHECKING:
    from rye.batches.driver import Summary
    from rye.batches.folder import BatchFolder
    from rye.context import Context

_COMMANDS = ("resume", "status", "show")


class _Batch(click.Group):
    """`rye batch TOOL …`, beside its commands."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if args and args[0] not in _COMMANDS and args[0] not in ("-h", "--help"):
            args = ["TOOL", *args]
        return super().parse_args(ctx, args)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The options of a new batch, and the commands."""
        run.format_options(click.Context(run, parent=ctx), formatter)
        self.format_commands(ctx, formatter)


class _Run(click.Command):
    """Its name is the place of its first argument."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - of click
        return ["[CALLS]", "[OPTIONS]"]


def _on_cluster(command: Callable[..., None]) -> Callable[..., None]:
    """Add the options that say where the calls run."""
    options = (
        click.option("--on", type=click.Choice(["local", "ray"]), help="Where the calls run."),
        click.option(
            "--env", metavar="NAME", multiple=True, help="Send this variable to the workers."
        ),
        click.option(
            "--insecure", is_flag=True, help="Use a cluster that needs no authentication."
        ),
    )
    for option in reversed(options):
        command = option(command)
    return command


def _check_cluster(options: Mapping[str, Any]) -> None:
    for name in ("env", "insecure"):
        if options.get(name) and options.get("on") != "ray":
            raise click.UsageError(f"--{name} is for --on ray")


@click.group(cls=_Batch, options_metavar="", subcommand_metavar="TOOL [CALLS] [OPTIONS]")
def command() -> None:
    """Call one tool many times, on this machine or on a Ray cluster.

    \b
    Examples:
      rye batch rye/bash/bash calls.jsonl --out results.jsonl
      rye batch rye/fs/read --each 'path=docs/**/*.md'
      rye batch rye/bash/bash calls.jsonl --on ray
      rye batch status DIR
      rye batch resume DIR
      rye batch show DIR --failed

    `rye batch TOOL --help` lists the options of a new batch.
    """


@command.command("TOOL", cls=_Run, hidden=True)
@click.argument("item_id", metavar="TOOL", shell_complete=complete_item)
@click.argument("calls", metavar="[CALLS]", required=False, type=click.Path(path_type=Path))
@click.option("--each", "pattern", metavar="NAME=GLOB", help="One call for each matching file.")
@click.option(
    "--out", metavar="FILE", type=click.Path(path_type=Path), help="Write results here too."
)
@click.option(
    "--dir", "folder", metavar="DIR", type=click.Path(path_type=Path), help="Keep the batch here."
)
@click.option("--jobs", metavar="N", type=click.IntRange(1, 100_000), help="Calls at once.")
@click.option(
    "--timeout",
    metavar="SECONDS",
    type=float,
    help="The time limit of each call.",
)
@click.option(
    "--max-failures", metavar="N", type=click.IntRange(min=1), help="Stop after N failures."
)
@click.option(
    "--retry", metavar="N", type=click.IntRange(min=0), default=0, help="Try a failed call again."
)
@click.option("--retry-unsafe", is_flag=True, help="Retry a tool that may not run twice.")
@click.option(
    "--order",
    type=click.Choice(["done", "input"]),
    default="done",
    help="The order of --out and of `show`: as calls end (the default), or as in the input.",
)
@click.option("--skip-bad", is_flag=True, help="Leave out calls that the schema refuses.")
@click.option(
    "--receipts", type=click.Choice(["signed"]), help="Sign a receipt of every call with your key."
)
@_on_cluster
@click.option("--sync", is_flag=True, help="Survive a power cut, too.")
@click.option("--json", "as_json", is_flag=True, help="Print progress as JSON lines.")
@click.pass_obj
def run(
    invocation: Invocation,
    /,
    *,
    item_id: str,
    calls: Path | None,
    pattern: str | None,
    out: Path | None,
    folder: Path | None,
    as_json: bool,
    skip_bad: bool,
    **options: Any,
) -> None:
    """Call TOOL once for each line of CALLS, an object of parameters, or {"id", "parameters"}."""
    from rye.batches.folder import BatchFolder
    from rye.batches.known import new_folder, remember
    from rye.batches.plan import create
    from rye.batches.running import backend_of
    from rye.executor.config.build import MAX_SECONDS

    if (calls is None) == (pattern is None):
        raise click.UsageError("pass a file of calls, or --each")
    context = invocation.context
    path = Path(os.path.abspath(folder or new_folder(context)))  # noqa: PTH100 - without '..'
    where = BatchFolder(path, sync=options["sync"])
    options["out"] = None if out is None else str(out.absolute())
    if out is not None and calls is not None and _is_same(out, calls):
        raise click.UsageError("--out is the file of the calls; choose another")
    if out is not None and where.contains(out):
        raise click.UsageError("--out is in the folder of the batch; choose another")
    # A resume could not write it either.
    if out is not None and (out.is_dir() or not out.parent.is_dir()):
        raise click.UsageError("--out is not a file in an existing folder; choose another")
    if options["timeout"] is not None and not 0 < options["timeout"] <= MAX_SECONDS:
        raise click.UsageError(f"--timeout is not above 0 and at most {MAX_SECONDS}")
    _check_cluster(options)

    async def body() -> Summary:
        backend = backend_of(item_id, context, options)
        try:
            await backend.open()
            assert backend.verified is not None  # noqa: S101 - it was opened
            lines = _lines(calls, pattern, context.project_path)
            with _interrupted_at_once():
                create(where, lines, backend.verified, options, skip_bad=skip_bad)
            remember(where.path, context)
            if as_json:
                print_json({"dir": str(where.path)}, indent=None)
            else:
                echo(f"batch {where.path}", err=True)
            return await _run(where, backend, context, rerun_unknown=False, as_json=as_json)
        finally:
            await backend.close()

    _end(body(), where, as_json=as_json)


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@_on_cluster
@click.option("--rerun-unknown", is_flag=True, help="Run calls again that may have run.")
@click.option("--json", "as_json", is_flag=True, help="Print progress as JSON lines.")
@click.pass_obj
def resume(
    invocation: Invocation, /, *, folder: Path, rerun_unknown: bool, as_json: bool, **cluster: Any
) -> None:
    """Run the calls of a batch that have no result yet.

    \b
    Examples:
      rye batch resume ~/.ai/batches/01k2
    """
    from rye.batches.folder import BatchFolder
    from rye.batches.running import backend_of

    context = invocation.context
    manifest = BatchFolder(folder).manifest()
    options = {
        **manifest["options"],
        **{name: value for name, value in cluster.items() if value},
        # Accepted for the cluster of then, which need not be this one.
        "insecure": cluster["insecure"],
    }
    _check_cluster({**cluster, "on": options.get("on")})
    where = BatchFolder(folder.absolute(), sync=bool(options.get("sync")))

    async def body() -> Summary:
        backend = backend_of(manifest["tool"], context, options)
        try:
            return await _run(where, backend, context, rerun_unknown=rerun_unknown, as_json=as_json)
        finally:
            await backend.close()

    _end(body(), where, as_json=as_json)


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
def status(folder: Path, as_json: bool) -> None:
    """Say how far a batch has come; it may be running.

    \b
    Examples:
      rye batch status ~/.ai/batches/01k2
    """
    from rye.batches.folder import BatchFolder
    from rye.batches.plan import state_of

    where = BatchFolder(folder)
    manifest, state = where.manifest(), state_of(where)
    outcomes = state.outcomes
    if as_json:
        print_json(
            {
                **manifest,
                "running": where.is_running(),
                "ended": state.ended,
                "in_doubt": state.in_doubt,
                "outcomes": dict(outcomes),
            }
        )
        return
    echo(f"{plain(manifest['tool'])}: {state.ended} of {state.total} calls have a result")
    for outcome, count in sorted(outcomes.items()):
        echo(f"  {outcome:<8} {count}")
    running = where.is_running()
    if state.in_doubt:
        doubt = "running now" if running else "interrupted; each may or may not have run"
        echo(f"  {state.in_doubt} started and have no result: {doubt}")
    if state.ended < state.total and not running:
        echo(f"go on with: rye batch resume {shlex.quote(str(folder))}")


@command.command()
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--failed", is_flag=True, help="Only calls that did not succeed.")
def show(folder: Path, failed: bool) -> None:
    """Print the results of a batch as JSON lines.

    \b
    Examples:
      rye batch show ~/.ai/batches/01k2 --failed
    """
    from rye.batches.folder import BatchFolder

    where = BatchFolder(folder)
    in_order = where.manifest()["options"].get("order") == "input"
    for one in where.results(in_order=in_order):
        if not failed or one["outcome"] not in ("ok", "skipped"):
            print_json(one, indent=None)


async def _run(
    where: BatchFolder,
    backend: Any,
    context: Context,
    *,
    rerun_unknown: bool,
    as_json: bool,
) -> Summary:
    from rye.batches.running import run_folder
    from rye.cli.output.batch_page import Progress

    where.open()
    try:
        if rerun_unknown:
            where.forget_unknown()
        options = where.manifest()["options"]
        if options.get("out"):
            in_order = options.get("order") == "input"
            where.copy_results_to(Path(options["out"]), in_order=in_order)
        with Progress(as_json=as_json) as progress:
            return await run_folder(
                where, backend, context, rerun_unknown=rerun_unknown, on_progress=progress.show
            )
    finally:
        where.close()


@contextmanager
def _interrupted_at_once() -> Iterator[None]:
    """Let Ctrl-C end what is done here; in an event loop, it would have to wait for it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _is_same(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:
        return False


def _lines(calls: Path | None, pattern: str | None, project: Path) -> Iterator[bytes]:
    from rye.batches.calls import bounded_lines, each
    from rye.errors import ParameterError

    if pattern is not None:
        yield from each(pattern, Path.cwd(), project)
    elif str(calls) == "-":
        yield from bounded_lines(sys.stdin.buffer)
    else:
        assert calls is not None  # noqa: S101 - one of the two is given
        try:
            with calls.open("rb") as lines:
                yield from bounded_lines(lines)
        except OSError as error:
            raise ParameterError(
                f"cannot read {calls}", [(error.strerror or "error").lower()], hint="pass a file"
            ) from None


def _end(body: Coroutine[Any, Any, Summary], where: BatchFolder, *, as_json: bool) -> None:
    """Run the batch, and say how it ended."""
    from rye.cli.output.batch_page import print_summary

    go_on = f"rye batch resume {shlex.quote(str(where.path))}"
    try:
        summary = asyncio.run(body)
    except KeyboardInterrupt:
        # The third Ctrl-C, or one before the first call.
        if not (where.path / "manifest.json").exists():
            raise
        print_error(f"interrupted; go on with: {go_on}")
        raise click.exceptions.Exit(130) from None
    print_summary(summary, as_json=as_json)
    for note in summary.notes:
        print_error(note)
    if summary.done < summary.total:
        reason = summary.stopped or "not all calls have a result"
        print_error(f"{reason}; go on with: {go_on}")
        if summary.stopped == "interrupted":
            raise click.exceptions.Exit(130)
        raise click.exceptions.Exit(1)
    if unknown := summary.outcomes["unknown"]:
        calls = "1 call" if unknown == 1 else f"{unknown} calls"
        again = f"{go_on} --rerun-unknown"
        print_error(f"{calls} may or may not have run; to run them again: {again}")
    if summary.failures:
        raise click.exceptions.Exit(1)
