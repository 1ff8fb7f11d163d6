"""Running a tool so that it ends with whoever wanted it."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

import anyio

from rye.errors import RyeError

if TYPE_CHECKING:
    from rye.executor.run.result import ExecutionResult

CLIENT_GONE = "rye.client_gone"
"""Under this name an HTTP request carries an ``asyncio.Event``: its client has hung up."""


class Jobs:
    """The calls that are under way."""

    def __init__(self) -> None:
        self._running: set[asyncio.Task[ExecutionResult]] = set()

    async def run(
        self, job: Coroutine[Any, Any, ExecutionResult], client_gone: asyncio.Event | None
    ) -> ExecutionResult:
        """The result of ``job``; cancelling this ends the job and its whole tree first.

        Raises ``RyeError`` if the client or the server leaves. The job has a task of its own:
        a cancelled scope cancels again and again what waits inside of it, and the job has to
        wait for the end of its processes.
        """
        task = asyncio.create_task(job)
        self._running.add(task)
        task.add_done_callback(self._running.discard)
        leaving = None if client_gone is None else asyncio.create_task(client_gone.wait())
        try:
            waiting: set[asyncio.Task[Any]] = {task} if leaving is None else {task, leaving}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if leaving is not None:
                leaving.cancel()
            if not task.done():
                await _end(task)
        if task.cancelled():
            raise RyeError("the call was ended", hint="call again if it is still wanted")
        return task.result()

    def end_all(self) -> None:
        """Begin to end every job; who waits for one is told."""
        for task in list(self._running):
            task.cancel()


async def _end(task: asyncio.Task[Any]) -> None:
    task.cancel()
    with anyio.CancelScope(shield=True):
        await asyncio.wait([task])
