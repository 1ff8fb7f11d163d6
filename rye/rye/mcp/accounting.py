"""What the history says about the calls of clients: who made them, what they had read, receipts."""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING

from rye.errors import HistoryError
from rye.executor.caches import BoundedDict
from rye.mcp.callers import caller_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from rye.catalogue.entry import CatalogueEntry
    from rye.context import Context
    from rye.executor.run.result import ExecutionResult
    from rye.history.signing import ReceiptSigner
    from rye.mcp.call_log import CallEntry
    from rye.mcp.request import Request
    from rye.recording.record import Caller
    from rye.recording.settings import HistoryConfig

_logger = logging.getLogger("rye.mcp")


class Accounting:
    """The accounting of one server."""

    def __init__(self, context: Context, *, receipts: bool) -> None:
        self._context = context
        self._receipts = receipts
        self._signer: ReceiptSigner | None = None
        self._signing: asyncio.Task[None] | None = None
        self._history: HistoryConfig | None = None
        self._shown: dict[str, str] = BoundedDict()

    def show(self, entry: CatalogueEntry) -> None:
        """Note that a client reads the description and the schema of this item."""
        from rye.recording.digests import digest_of_description

        schema: Mapping[str, Any] | None = entry.schema
        self._shown[entry.item_id] = digest_of_description(entry.description, schema)

    def caller(self, request: Request, item_id: str) -> Caller:
        """Return who makes a call."""
        return caller_of(request, self._shown.get(item_id, ""))

    def run_id(self, entry: CallEntry | None, *, dry_run: bool) -> str:
        """Return the id for the record of a call that is logged; empty if it gets none."""
        if entry is None or dry_run:
            return ""
        if self._history is None:
            from rye.recording.settings import HistoryConfig

            self._history = HistoryConfig(self._context)
        try:
            enabled = self._history.current().enabled
        except HistoryError:
            # Then the history uses its defaults.
            enabled = True
        return entry.begins_run() if enabled else ""

    def note(self, result: ExecutionResult) -> None:
        """Sign a receipt of the call soon, if the server does that; log a missing record."""
        metadata = result.metadata
        if fault := metadata.get("history_error"):
            _logger.warning("calls could not be recorded: %s", fault)
        run_id = metadata.get("run_id")
        if not self._receipts or run_id is None:
            return
        if self._signer is None:
            from rye.history.signing import ReceiptSigner

            self._signer = ReceiptSigner(self._context, lambda text: _logger.warning("%s", text))
        self._signer.add(run_id)
        if self._signing is None or self._signing.done():
            self._signing = asyncio.create_task(asyncio.to_thread(self._signer.sign))

    async def aclose(self) -> None:
        """Sign what waits."""
        if self._signing is not None:
            await asyncio.wait([self._signing])
        if self._signer is not None:
            await asyncio.to_thread(self._signer.sign)
