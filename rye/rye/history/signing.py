"""Signs the receipts of a server's calls, in batches behind their results."""

from __future__ import annotations

from collections.abc import Callable

from rye.context import Context
from rye.errors import RyeError
from rye.history.receipts import issue, user_signer
from rye.history.store import opened
from rye.trust.signer import Signer


class ReceiptSigner:
    """Collects runs, and signs their receipts with one key.

    A run that the process could not sign any more, because it was killed, gets its receipt from
    `rye receipt`.
    """

    def __init__(
        self, context: Context, on_fault: Callable[[str], None], signer: Signer | None = None
    ) -> None:
        """Raises ``KeyStoreError`` if the user's key cannot be used."""
        self._context = context
        self._on_fault = on_fault
        self._signer = user_signer(context) if signer is None else signer
        self._waiting: list[str] = []

    def add(self, run_id: str) -> None:
        """Sign the receipt of this run with the next batch."""
        self._waiting.append(run_id)

    def sign(self) -> None:
        """Sign what waits; blocks for the disk. A fault is reported, and tried again later."""
        waiting, self._waiting = self._waiting, []
        if not waiting:
            return
        try:
            with opened(self._context) as history:
                issue(history, waiting, self._signer)
        except RyeError as error:
            self._waiting = waiting + self._waiting
            self._on_fault(f"receipts could not be signed: {error}")
