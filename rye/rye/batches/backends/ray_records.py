"""The runs of workers, in the history of the user who started the batch."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from rye.errors import HistoryError
from rye.recording.settings import HistoryConfig
from rye.recording.spool import Spool, history_folder
from rye.recording.writer import Writer

if TYPE_CHECKING:
    from rye.batches.records import BatchResult
    from rye.context import Context


class WorkerRecords:
    """Appends what workers report to the user's own spool; a worker keeps nothing."""

    def __init__(self, context: Context) -> None:
        self._project = str(context.project_path)
        self._config = HistoryConfig(context)
        folder = history_folder(context.user_space)
        self._spool = Spool(folder)
        self._writer = Writer(folder)

    def keep(self, result: BatchResult, line: bytes | None, host: str) -> BatchResult:
        """Record the run; the result has no ``run_id`` if that is off or impossible."""
        if line is None:
            return result._replace(run_id=None)
        try:
            settings = self._config.current()
            if not settings.enabled:
                return result._replace(run_id=None)
            # The folder of the tool on the worker is gone by now.
            record = {**json.loads(line), "project": self._project, "worker": host}
            text = json.dumps(record, separators=(",", ":")).encode()
            self._spool.append(str(record["id"]), text, max_bytes=settings.retention.size)
            self._writer.appended(settings.retention)
        except HistoryError:
            return result._replace(run_id=None)
        return result

    def close(self) -> None:
        """Close the spool."""
        self._spool.close()
