"""The standard streams: whatever state they are in, the command ends in order."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import TextIO

# What a shell reports for a program that wrote to a pipe nobody reads any more.
BROKEN_PIPE = 128 + 13


def prepare() -> None:
    """Make all three usable, and text that the locale cannot spell no error.

    A stream that the caller closed leads to nowhere: otherwise the next file that is opened would
    get its number, and receive what is printed.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            _lead_nowhere(number)
            setattr(sys, name, os.fdopen(number, mode, closefd=False))
    _reconfigure(sys.stdout)


def flush() -> None:
    """Returns once all that was printed has arrived; raises if it could not."""
    sys.stdout.flush()


def drop_unwritten() -> None:
    """For after an error: what cannot be written must not fail again at the very end."""
    try:
        flush()
    except OSError:
        _lead_nowhere(1)


def broken_pipe() -> int:
    """The exit code for a reader that went away; what is still unwritten is dropped silently."""
    _lead_nowhere(1)
    return BROKEN_PIPE


def _lead_nowhere(number: int) -> None:
    nowhere = os.open(os.devnull, os.O_RDWR)
    if nowhere != number:
        os.dup2(nowhere, number)
        os.close(nowhere)


def _reconfigure(stream: TextIO) -> None:
    reconfigure = getattr(stream, "reconfigure", None)
    if reconfigure is not None:
        reconfigure(errors="backslashreplace")
