"""How errors are printed, and the exit codes of the command."""

from __future__ import annotations

import rye.errors
from rye.cli.output.printing import discard_stdout, display, echo, style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

USAGE, NOT_FOUND, TRUST, LOCK, TIMEOUT, INTERRUPTED = 2, 3, 4, 5, 124, 130
OTHER = 1
MAX_FAULTS = 20
"""How many unusable files a list names; a folder may contain thousands."""
# What a shell reports for a program that SIGPIPE ended.
BROKEN_PIPE = 128 + 13

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (rye.errors.ParameterError, USAGE),
    (rye.errors.ItemIdError, USAGE),
    (rye.errors.ItemNotFoundError, NOT_FOUND),
    (rye.errors.AmbiguousIdError, NOT_FOUND),
    (rye.errors.RunNotFoundError, NOT_FOUND),
    (rye.errors.TrustError, TRUST),
    (rye.errors.PermissionsError, TRUST),
    (rye.errors.ApprovalError, TRUST),
    (rye.errors.ReceiptError, TRUST),
    (rye.errors.LockError, LOCK),
    (rye.errors.CancelledOnPageError, INTERRUPTED),
)


def exit_code(error_type: type[BaseException]) -> int:
    """Return the exit code for an error of this type; 1 if the type has none."""
    return next((code for kind, code in _CODES if issubclass(error_type, kind)), OTHER)


def exit_code_of_name(error_type: str) -> int:
    """Return the exit code for the name of an error type, as results contain it."""
    kind = getattr(rye.errors, error_type, None)
    return exit_code(kind) if isinstance(kind, type) else OTHER


def print_error(message: str) -> None:
    """Print one line on stderr that begins with the name of the command.

    A stderr that cannot be written, as after a hang-up, is ignored: the command still has to clean
    up and exit with its code.
    """
    try:
        echo(f"{style('rye:', fg='red', bold=True)} {display(message)}", err=True)
    except OSError:
        return


def print_faults(faults: Sequence[str]) -> None:
    """Print why files cannot be used: a line for each of the first, then the number of the rest."""
    for fault in faults[:MAX_FAULTS]:
        print_error(fault)
    rest = len(faults) - MAX_FAULTS
    if rest > 0:
        files = "file" if rest == 1 else "files"
        print_error(f"{rest:,} more {files} cannot be used; list them with: rye doctor")


def report_error(error: BaseException) -> int | None:
    """Print an expected error and return its exit code; return ``None`` for an unexpected one.

    Nothing is printed for a broken pipe: that is how `rye list | head` ends.
    """
    from lilux.primitives.errors import LiluxError

    if isinstance(error, rye.errors.RyeError | LiluxError):
        print_error(str(error))
        return exit_code(type(error))
    if isinstance(error, KeyboardInterrupt):
        print_error("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        discard_stdout()
        return BROKEN_PIPE
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        print_error(f"{where}{error.strerror.lower()}")
        return OTHER
    return None
