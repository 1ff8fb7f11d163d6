"""Turns an exception into the outcome of a call."""

from __future__ import annotations

from pathlib import Path

from lilux.primitives.errors import LiluxError

from rye.errors import ItemNotFoundError, LockError, RyeError
from rye.executor.run.outcome import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PACKAGE = Path(__file__).parents[2]


def failure_of(error: Exception) -> Outcome:
    """The outcome for ``error``, with its type and its fields.

    Of an unexpected exception only the type and the place are reported: its text may contain
    values.
    """
    metadata: dict[str, Any] = {
        "error_type": type(error).__name__,
        "hint": getattr(error, "hint", ""),
    }
    if isinstance(error, RyeError | LiluxError):
        metadata.update(_fields_of(error))
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


def _fields_of(error: Exception) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    if isinstance(error, ItemNotFoundError) and error.nearest:
        fields["nearest"] = list(error.nearest)
    if isinstance(error, LockError):
        fields["lockfile"] = str(error.lockfile)
    if agent_hint := getattr(error, "agent_hint", ""):
        fields["agent_hint"] = agent_hint
    if issues := getattr(error, "issues", None):
        fields["issues"] = list(issues)
    return fields


def _place(error: Exception) -> str:
    at = error.__traceback__
    if at is None:
        return "an unknown place"
    while at.tb_next is not None:
        at = at.tb_next
    file = Path(at.tb_frame.f_code.co_filename)
    shown = file.relative_to(_PACKAGE.parent) if file.is_relative_to(_PACKAGE) else file.name
    return f"{shown}:{at.tb_lineno}"
