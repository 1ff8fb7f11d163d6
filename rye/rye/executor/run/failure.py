"""An exception as the outcome of a call."""

from __future__ import annotations

from pathlib import Path

from lilux.primitives.errors import LiluxError

from rye.errors import ItemNotFoundError, LockError, ParameterError, RyeError
from rye.executor.config.build import MAX_SECONDS
from rye.executor.run.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PACKAGE = Path(__file__).parents[2]


def failure_of(error: Exception) -> Outcome:
    """The outcome for ``error``, with its type and what it carries.

    An exception that nobody foresaw is told by its type and place alone: its text may hold values.
    """
    metadata: dict[str, Any] = {
        "error_type": type(error).__name__,
        "hint": getattr(error, "hint", "") or _last_part(error),
    }
    if isinstance(error, RyeError | LiluxError):
        metadata.update(_carried(error))
        return Outcome(success=False, data=None, error=str(error), metadata=metadata)
    if isinstance(error, OSError) and error.strerror:
        where = f"{error.filename}: " if error.filename else ""
        return Outcome(
            success=False, data=None, error=f"{where}{error.strerror.lower()}", metadata=metadata
        )
    return Outcome(
        success=False,
        data=None,
        error=f"unexpected {type(error).__name__} at {_place(error)}; this is a defect of rye or "
        "of a primitive: please report it",
        metadata=metadata,
    )


def refuse_bad_options(timeout: Any) -> None:
    """Raise ``ParameterError`` for a ``timeout`` that is no positive number of seconds."""
    if timeout is None:
        return
    number = isinstance(timeout, int | float) and not isinstance(timeout, bool)
    if not (number and timeout > 0 and timeout != float("inf")):
        issue = "timeout: expected a positive number"
    elif timeout > MAX_SECONDS:
        issue = f"timeout: expected at most {MAX_SECONDS}"
    else:
        return
    raise ParameterError("wrong call", [issue], hint="pass seconds, or leave out")


def _last_part(error: Exception) -> str:
    """What to do, which ends the message of every error of ours, also one that was passed on."""
    if not isinstance(error, RyeError | LiluxError):
        return ""
    _, semicolon, todo = str(error).rpartition("; ")
    return todo if semicolon else ""


def _carried(error: Exception) -> dict[str, Any]:
    carried: dict[str, Any] = {}
    if isinstance(error, ItemNotFoundError) and error.nearest:
        carried["nearest"] = list(error.nearest)
    if isinstance(error, LockError):
        carried["lockfile"] = str(error.lockfile)
    if issues := getattr(error, "issues", None):
        carried["issues"] = list(issues)
    return carried


def _place(error: Exception) -> str:
    at = error.__traceback__
    if at is None:
        return "an unknown place"
    while at.tb_next is not None:
        at = at.tb_next
    file = Path(at.tb_frame.f_code.co_filename)
    shown = file.relative_to(_PACKAGE.parent) if file.is_relative_to(_PACKAGE) else file.name
    return f"{shown}:{at.tb_lineno}"
