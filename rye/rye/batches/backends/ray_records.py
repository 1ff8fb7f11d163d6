"""The runs of workers, in the history of the user who started the batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from rye.batches.backends import WorkerLost
from rye.batches.records import FAILED, OK, REFUSED, TIMEOUT, UNKNOWN, BatchResult
from rye.errors import HistoryError
from rye.recording.record import BATCH
from rye.recording.settings import HistoryConfig
from rye.recording.spool import Spool, history_folder
from rye.recording.writer import Writer

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rye.batches.records import Call
    from rye.context import Context

_OUTCOMES = (OK, FAILED, REFUSED, TIMEOUT, UNKNOWN)


class WorkerRecords:
    """Appends what workers report to the user's own spool; a worker keeps nothing."""

    def __init__(self, context: Context, item_id: str, closure: str) -> None:
        self._fixed = {"project": str(context.project_path), "by": BATCH}
        self._tool = (item_id, closure)
        self._config = HistoryConfig(context)
        folder = history_folder(context.user_space)
        self._spool = Spool(folder)
        self._writer = Writer(folder)

    def keep(self, result: BatchResult, line: bytes | None, host: str) -> BatchResult:
        """Record the run; the result has no ``run_id`` if that is off or impossible.

        Raises :class:`WorkerLost` for a record of anything but this run of this tool: receipts are
        signed from it.
        """
        if line is None:
            return result._replace(run_id=None)
        record = _parsed(line)
        about = (record.get("id"), record.get("item"), record.get("closure", self._tool[1]))
        if about != (result.run_id, *self._tool):
            raise WorkerLost
        try:
            settings = self._config.current()
            if not settings.enabled:
                return result._replace(run_id=None)
            # The folder of the tool on the worker is gone by now.
            text = json.dumps({**record, **self._fixed, "worker": host}, separators=(",", ":"))
            self._spool.append(record["id"], text.encode(), max_bytes=settings.retention.size)
            self._writer.appended(settings.retention)
        except HistoryError:
            return result._replace(run_id=None)
        return result

    def close(self) -> None:
        """Close the spool."""
        self._spool.close()


def checked_result(fields: Sequence[Any], call: Call, run_id: str) -> BatchResult:
    """The result of a call, as a worker reports it. Raises :class:`WorkerLost` for another one."""
    try:
        result = BatchResult(*fields)
    except TypeError:
        raise WorkerLost from None
    about = (result.line, result.id, result.attempt, result.run_id or run_id)
    if about != (call.line, call.id, call.attempt, run_id) or result.outcome not in _OUTCOMES:
        raise WorkerLost
    return result


def _parsed(line: bytes) -> dict[str, Any]:
    try:
        record = json.loads(line)
    except ValueError:
        raise WorkerLost from None
    if not isinstance(record, dict):
        raise WorkerLost
    return record
