"""From the arguments to an exit code, whichever way a command goes."""

from __future__ import annotations

import os
import sys

from rye.cli.output import streams
from rye.cli.output.errors import told

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


def conduct(arguments: Sequence[str]) -> int:
    """Run a command. Nothing that is foreseen comes out as an exception."""
    streams.prepare()
    try:
        try:
            code = _run(arguments)
        except SystemExit as end:
            code = _code_of(end)
        streams.flush()
    except (Exception, KeyboardInterrupt) as error:
        foreseen = told(error)
        if foreseen is None:
            raise
        code = foreseen
        streams.drop_unwritten()
    return code


def leave(code: int) -> NoReturn:
    """End the process at once, for after a command that has closed what it opened.

    The interpreter would take modules apart for up to a quarter of the time that all else takes.
    All that was printed has arrived.
    """
    try:
        sys.stderr.flush()
    finally:
        os._exit(code)


def _run(arguments: Sequence[str]) -> int:
    if arguments[:1] == ["run"]:
        from rye.cli.run.request import read_plainly

        request = read_plainly(arguments[1:])
        if request is not None:
            from rye.cli.invocation import Surroundings
            from rye.cli.run.run import run

            return run(request, Surroundings())
    from rye.cli.app import main

    return main(list(arguments))


def _code_of(end: SystemExit) -> int:
    if end.code is None:
        return 0
    if isinstance(end.code, int):
        return end.code
    raise end
