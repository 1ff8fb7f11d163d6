"""The result of a call."""

from __future__ import annotations

from collections.abc import Mapping

from lilux.record import Record, field

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class ExecutionResult(Record, frozen=True, kw_only=True):
    """The result of a call, also of one that failed. ``execute()`` raises only cancellation.

    ``data`` is the output of the tool if that is JSON; otherwise a dict with ``stdout``, ``stderr``
    and ``return_code``, or the body of a response. ``chain`` lists the elements as dicts with
    ``item_id``, ``space``, ``path``, ``version``, ``executor_id``, ``integrity``, ``signer``.
    ``metadata`` contains ``error_type`` and ``hint`` for a failure, ``return_code``, ``timed_out``,
    ``truncated``, ``autopsy`` (what the processes waited for when the time was over) and similar
    fields for a run, ``run_id`` (its record in the history), ``plan`` for a dry run, and
    ``closure``, the digest of what was verified.
    """

    success: bool
    data: Any = None
    error: str | None = None
    duration_ms: float = 0.0
    chain: tuple[Mapping[str, Any], ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    raw_stdout: bytes | None = None
    """What a process printed, if that is not UTF-8."""
    readable: tuple[str, ...] | None = None
    """The paths that a confined process could read; ``None`` if it was not confined."""
