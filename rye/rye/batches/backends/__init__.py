"""Where the calls of a batch run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from rye.batches.records import BatchResult, Call
    from rye.executor.run.prepare import VerifiedChain


class WorkerLost(Exception):  # noqa: N818 - an event of a backend, not a mistake
    """A worker died: calls without a result may or may not have run."""


class Backend(Protocol):
    """Runs calls. The driver keeps the journal, the order and the results."""

    @property
    def lanes(self) -> int:
        """Calls that may run at once, after :meth:`open`; fewer when workers are lost."""

    verified: VerifiedChain | None
    """The tool, after :meth:`open`."""

    async def open(self) -> None:
        """Get ready; raises a ``RyeError`` if the tool cannot run."""

    async def run(self, call: Call) -> BatchResult:
        """Run the call. Raises :class:`WorkerLost`; cancelling ends the call."""

    async def close(self) -> None:
        """End everything."""
