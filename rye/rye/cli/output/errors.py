"""How an error is told, and the code that the command ends with."""

from __future__ import annotations

import rye.errors
from rye.cli.output import streams
from rye.cli.output.printing import echo, style

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import NoReturn

USAGE, NOT_FOUND, TRUST, LOCK, TIMEOUT, INTERRUPTED = 2, 3, 4, 5, 124, 130
OTHER = 1

_CODES: tuple[tuple[type[Exception], int], ...] = (
    (rye.errors.ParameterError, USAGE),
    (rye.errors.ItemIdError, USAGE),
    (rye.errors.ItemNotFoundError, NOT_FOUND),
    (rye.errors.AmbiguousIdError, NOT_FOUND),
    (rye.errors.TrustError, TRUST),
    (rye.errors.LockError, LOCK),
)


def exit_code(error_type: type[BaseException]) -> int:
    """The code for an error of this type; 1 if it has none of its own."""
    return next((code for kind, code in _CODES if issubclass(error_type, kind)), OTHER)


def exit_code_of_name(error_type: str) -> int:
    """The same for the name of a type, as results carry it."""
    kind = getattr(rye.errors, error_type, None)
    return exit_code(kind) if isinstance(kind, type) else OTHER


def tell(message: str) -> None:
    """One line on stderr that begins with the name of the command.

    A stderr that is gone, as after a hang-up, does not keep the command from ending in order.
    """
    from rye.cli.output.paths import shown

    try:
        echo(f"{style('rye:', fg='red', bold=True)} {shown(message)}", err=True)
    except OSError:
        return


def fail(message: str, code: int = OTHER) -> NoReturn:
    """Tell, and end the command."""
    tell(message)
    raise SystemExit(code)


def told(error: BaseException) -> int | None:
    """Tell an error that is foreseen and give its exit code; ``None`` for any other.

    Of a reader that went away nothing is told: that is how `rye list | head` ends.
    """
    from lilux.primitives.errors import LiluxError

    if isinstance(error, rye.errors.RyeError | LiluxError):
        tell(str(error))
        return exit_code(type(error))
    if isinstance(error, KeyboardInterrupt):
        tell("interrupted")
        return INTERRUPTED
    if isinstance(error, BrokenPipeError):
        return streams.broken_pipe()
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        tell(f"{where}{error.strerror.lower()}")
        return OTHER
    return None


class TellingFailures:
    """A context that turns typed errors into a message and an exit code: for all commands."""

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, (Exception, KeyboardInterrupt)):
            code = told(error)
            if code is not None:
                raise SystemExit(code) from None
