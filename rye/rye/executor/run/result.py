"""What a call gives back."""

from __future__ import annotations

from collections.abc import Mapping

from lilux.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ExecutionResult(Record, frozen=True, kw_only=True):
    """The end of a call, good or bad. ``execute()`` raises nothing but cancellation.

    ``data`` is what a tool printed as JSON; otherwise a dict with ``stdout``, ``stderr`` and
    ``return_code`` (or the body of a response). ``chain`` lists the elements as dicts with
    ``item_id``, ``space``, ``path``, ``version``, ``executor_id``, ``integrity``, ``signer``.
    ``metadata`` holds ``error_type`` and ``hint`` for a failure, ``return_code``, ``timed_out``,
    ``truncated`` and the like for a run, and ``plan`` for a dry run.
    """

    success: bool
    data: Any = None
    error: str | None = None
    duration_ms: float = 0.0
    chain: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
