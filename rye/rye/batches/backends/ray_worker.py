"""What runs on a node of the cluster: one executor, its helper, and the calls handed to it.

Only calls that the driver handed over run here, each of them once. Nothing is tried again: if this
process dies, the driver decides about the calls that have no result.
"""

from __future__ import annotations

import asyncio
import platform
import socket
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rye.batches.backends.local import result_of
from rye.batches.backends.ray_shipment import Shipment
from rye.batches.backends.ray_space import WorkerSpace
from rye.batches.records import Call
from rye.errors import ClosureError, RyeError
from rye.executor.run.execute import PrimitiveExecutor
from rye.recording.record import Caller
from rye.recording.spool import Spool

if TYPE_CHECKING:
    from rye.executor.run.prepare import VerifiedChain

_GATHERING_SECONDS = 0.01
Answer = tuple[tuple[Any, ...], bytes | None]
"""The fields of a result, and the record of the run for the driver's history."""


class RayWorker:
    """The actor of a node. All methods run in one event loop."""

    def __init__(self) -> None:
        self._space = WorkerSpace()
        self._records = _Records()
        self._executor: PrimitiveExecutor | None = None
        self._verified: VerifiedChain | None = None
        self._timeout: float | None = None
        self._running: dict[int, asyncio.Task[None]] = {}
        self._ended: list[Answer] = []
        self._news = asyncio.Event()

    async def about(self) -> dict[str, str]:
        """Who this is."""
        import rye

        return {
            "host": socket.gethostname(),
            "rye": rye.__version__,
            "python": platform.python_version(),
        }

    async def open(
        self,
        shipment: Shipment,
        variables: Mapping[str, str],
        timeout: float | None,  # noqa: ASYNC109 - of each call
    ) -> tuple[str, str, str] | str:
        """Verify the tool here; returns its digest, or the type, reason and hint of an error."""
        try:
            context = self._space.fill(shipment, variables, socket.gethostname())
            self._executor = PrimitiveExecutor(context=context, spool=self._records)
            self._verified = await self._executor.freeze(shipment.item_id)
            if self._verified.closure.digest != shipment.closure:
                raise ClosureError(
                    f"{shipment.item_id!r} is another closure on {socket.gethostname()}: "
                    f"{self._verified.closure.digest[:12]}, not {shipment.closure[:12]}",
                    hint="install the same version of rye, and the same bundles, on every node",
                )
        except RyeError as error:
            return type(error).__name__, error.reason, error.hint
        self._timeout = timeout
        return self._verified.closure.digest

    async def exchange(self, calls: Sequence[tuple[Any, ...]]) -> list[Answer]:
        """Start the calls, and return what has ended; waits until something has.

        An exchange that waits returns when the next one arrives.
        """
        self._news.set()
        for *fields, run_id in calls:
            call = Call(*fields)
            self._running[call.line] = asyncio.create_task(self._run(call, run_id))
        if not self._ended:
            news = self._news = asyncio.Event()
            await news.wait()
        if len(self._ended) < len(self._running):
            # A message costs about as much as a call, so others may come along.
            await asyncio.sleep(_GATHERING_SECONDS)
        ended, self._ended = self._ended, []
        return ended

    async def cancel(self, lines: Sequence[int]) -> None:
        """End calls; they have no result."""
        for line in lines:
            task = self._running.get(line)
            if task is not None:
                task.cancel()

    async def close(self) -> None:
        """End all calls, and remove what is left on this machine."""
        tasks = list(self._running.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        if self._executor is not None:
            await self._executor.aclose()
        self._space.close()

    async def _run(self, call: Call, run_id: str) -> None:
        assert self._executor is not None  # noqa: S101 - it was opened
        assert self._verified is not None  # noqa: S101 - as above
        try:
            result = await self._executor.execute(
                self._verified.chain[0].item_id,
                call.parameters,
                use_lockfile=False,
                timeout=self._timeout,
                caller=Caller(kind="batch"),
                verified=self._verified,
                run_id=run_id,
            )
            answer = result_of(call, result)
            self._ended.append((tuple(answer), self._records.take(answer.run_id)))
            self._news.set()
        finally:
            del self._running[call.line]


class _Records(Spool):
    """Keeps the record of a run until it is sent to the driver."""

    def __init__(self) -> None:
        super().__init__("")
        self._lines: dict[str, bytes] = {}

    def append(self, run_id: str, line: bytes, *, max_bytes: int) -> None:
        del max_bytes
        self._lines[run_id] = line

    def take(self, run_id: str | None) -> bytes | None:
        return None if run_id is None else self._lines.pop(run_id, None)
