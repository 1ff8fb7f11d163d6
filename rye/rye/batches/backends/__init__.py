"""Where the calls of a batch run."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

from rye.batches.records import BatchResult, Call

if TYPE_CHECKING:
    from rye.executor.run.prepare import VerifiedChain


class WorkerLost(Exception):  # noqa: N818 - an event of a backend, not a mistake
    """A worker died: calls without a result may or may not have run."""


class Backend(Protocol):
    """Runs chunks of calls. The driver keeps the journal, the order and the results."""

    @property
    def lanes(self) -> int:
        """Chunks that may be under way at once, after :meth:`open`; fewer when workers are lost."""

    chunk: int
    """Calls in a chunk."""
    verified: VerifiedChain | None
    """The tool, after :meth:`open`."""

    async def open(self) -> None:
        """Get ready; raises a ``RyeError`` if the tool cannot run."""

    def submit(self, chunk: Sequence[Call]) -> AsyncIterator[BatchResult]:
        """Run the calls, and yield each result. Raises :class:`WorkerLost`.

        Cancelling the iteration ends the calls.
        """

    async def close(self) -> None:
        """End everything."""
