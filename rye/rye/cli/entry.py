"""The console script ``rye``: from the arguments to an exit code.

Start-up time matters here, so each module is imported by the branch that needs it.
"""

from __future__ import annotations

import gc
import os
import sys

from rye import __version__

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

# A short command never allocates this many objects, so the garbage collector never runs for it.
_GC_THRESHOLD = 100_000

# Imported only by the commands `rye mcp` and `rye ui`.
_SERVER_MODULES = ("rye.cli.commands.mcp", "rye.cli.commands.ui")


def main() -> None:
    """Run the command that ``sys.argv`` names, and exit."""
    arguments = sys.argv[1:]
    if arguments == ["--version"] and sys.stdout is not None:
        _print_version()
        return
    gc.set_threshold(_GC_THRESHOLD)
    code = run_command(arguments)
    if any(name in sys.modules for name in _SERVER_MODULES):
        # The server has threads and connections that must be closed.
        sys.exit(code)
    _exit_now(code)


def run_command(arguments: Sequence[str]) -> int:
    """Run a command and return its exit code. Expected errors are printed, not raised."""
    from rye.cli.output.errors import report_error
    from rye.cli.output.printing import flush_or_discard, prepare_streams

    prepare_streams()
    try:
        try:
            code = _dispatch(arguments)
        except SystemExit as end:
            code = _code_of(end)
        sys.stdout.flush()
    except (Exception, KeyboardInterrupt) as error:
        reported = report_error(error)
        if reported is None:
            raise
        code = reported
        flush_or_discard()
    return code


def _dispatch(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["run"]:
        from rye.cli.run.request import parse_without_click

        request = parse_without_click(arguments[1:])
        if request is not None:
            from rye.cli.invocation import Invocation
            from rye.cli.run.run import run

            return run(request, Invocation())
    if arguments[:1] == ["history"]:
        from rye.cli.history.request import parse_without_click as parse_list

        listing = parse_list(arguments[1:])
        if listing is not None:
            from rye.cli.history.listing import list_runs
            from rye.cli.invocation import Invocation

            return list_runs(listing, Invocation())
    from rye.cli.app import main as run_click_command

    return run_click_command(list(arguments))


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    raise end


def _exit_now(code: int) -> NoReturn:
    """End the process without tearing down the interpreter, which would add up to 25 % of time.

    The command has closed what it opened, and its output has been flushed.
    """
    try:
        sys.stderr.flush()
    finally:
        os._exit(code)


def _print_version() -> None:
    try:
        sys.stdout.write(f"rye {__version__}\n")
        sys.stdout.flush()
    except OSError as error:
        from rye.cli.output.errors import OTHER, report_error

        _exit_now(report_error(error) or OTHER)
