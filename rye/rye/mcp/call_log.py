"""``--log FILE``: one line of JSON for each call, without any value that a client sent or read."""

from __future__ import annotations

import json
import logging
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rye.errors import ParameterError
from rye.executor.run.recorded import OUTCOME_OF_ERROR
from rye.recording.record import CANCELLED, ERROR, OK, REFUSED, utc_text
from rye.recording.run_ids import new_run_id

if TYPE_CHECKING:
    from rye.executor.run.result import ExecutionResult
    from rye.mcp.request import Request

BUSY = "busy"

# With these errors the id is a text of the client, and perhaps not the name of an item.
_NOT_AN_ITEM = frozenset({"ItemNotFoundError", "ItemIdError", "BusyError"})
_logger = logging.getLogger("rye.mcp")


class CallEntry:
    """One call on its way to its line."""

    def __init__(self, request: Request, item: str, *, exists: bool) -> None:
        """Without ``exists``, ``item`` is a text of the client until the call says otherwise."""
        self._request = request
        self._asked = item
        self._item = item if exists else None
        self._started = time.time_ns() // 1_000_000
        self._clock = time.perf_counter()
        self._run_id: str | None = None
        self._outcome = CANCELLED

    def begins_run(self) -> str:
        """Return a new id for the run, which is in the line even if the call is cancelled."""
        self._run_id = new_run_id(self._started)
        return self._run_id

    def found(self, item_id: str) -> None:
        """Note the full id of the tool that is called."""
        self._item = item_id

    def ended(self, result: ExecutionResult) -> None:
        """Note how the tool ended."""
        self._run_id = result.metadata.get("run_id")
        if result.success:
            self._outcome = OK
        else:
            self._failed(str(result.metadata.get("error_type")))
        if result.chain:
            self.found(str(result.chain[0]["item_id"]))

    def succeeded(self) -> None:
        """Note that a built-in tool has returned its result."""
        self._outcome = OK

    def failed(self, error: Exception) -> None:
        """Note why there is no result, unless it is known how the tool ended."""
        if self._outcome == CANCELLED:
            self._failed(type(error).__name__)

    def line(self, bytes_out: int) -> bytes:
        """Return the line."""
        fields: dict[str, Any] = {
            "time": utc_text(self._started),
            "client": self._request.client or None,
            "token": self._request.token_name or None,
            "item": self._item,
            "run_id": self._run_id,
            "duration_ms": round((time.perf_counter() - self._clock) * 1000, 3),
            "outcome": self._outcome,
            "bytes_out": bytes_out,
        }
        return json.dumps(fields).encode() + b"\n"

    def _failed(self, kind: str) -> None:
        import rye.errors

        if kind not in _NOT_AN_ITEM:
            self._item = self._item or self._asked
        if kind == "BusyError":
            self._outcome = BUSY
        else:
            known = OUTCOME_OF_ERROR.get(kind)
            self._outcome = known or (REFUSED if hasattr(rye.errors, kind) else ERROR)


class CallLog:
    """The file. It may be moved away: the next line creates it again."""

    def __init__(self, path: Path) -> None:
        """Raises ``ParameterError`` if the file cannot be written."""
        self._path = path
        try:
            os.close(self._open())
        except OSError as error:
            reason = (error.strerror or type(error).__name__).lower()
            raise ParameterError(
                "invalid --log", [f"{path}: {reason}"], hint="pass a file that you can write"
            ) from None

    def write(self, entry: CallEntry, bytes_out: int) -> None:
        """Append the line of a call. A call does not fail because of its line."""
        try:
            descriptor = self._open()
            try:
                os.write(descriptor, entry.line(bytes_out))
            finally:
                os.close(descriptor)
        except OSError as error:
            _logger.warning(
                "calls cannot be logged to %s (%s)", self._path, (error.strerror or "").lower()
            )

    def _open(self) -> int:
        # Whole lines are appended, also by several servers. Opening takes microseconds.
        return os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o600)
