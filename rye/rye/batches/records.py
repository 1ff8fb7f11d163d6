"""The records of a batch: a call, its result, and what a result can be."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

OK: Final = "ok"
FAILED: Final = "failed"
REFUSED: Final = "refused"
TIMEOUT: Final = "timeout"
UNKNOWN: Final = "unknown"
"""It was started, and nobody knows whether it ran."""
SKIPPED: Final = "skipped"
"""Its line could not be used, and the user asked to go on."""
OUTCOMES: Final = (OK, FAILED, REFUSED, TIMEOUT, UNKNOWN, SKIPPED)


class Call(NamedTuple):
    """One call."""

    line: int
    """Its place in the input, from 1."""
    id: str
    parameters: Mapping[str, Any]
    attempt: int = 1


class BatchResult(NamedTuple):
    """The result of one call: the fields of a line of ``results.jsonl``."""

    line: int
    id: str
    outcome: str
    data: Any
    error: str | None
    attempt: int
    duration_ms: float
    run_id: str | None

    def fields(self) -> dict[str, Any]:
        """As a line has them: ``data`` or ``error``, never both missing."""
        fields = self._asdict()
        if self.error is None:
            del fields["error"]
        elif self.data is None:
            del fields["data"]
        return fields


def without_result(call: Call, outcome: str, error: str) -> BatchResult:
    """The result of a call that has none of its own."""
    return BatchResult(call.line, call.id, outcome, None, error, call.attempt, 0.0, None)
