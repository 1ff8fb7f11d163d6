"""Tasks of the server that are cancelled with their whole process tree."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any

from rye.errors import RyeError

if TYPE_CHECKING:
    from rye.executor.run.result import ExecutionResult


class RunningCalls:
    """The tool calls that are running."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[ExecutionResult]] = set()

    async def run(
        self, call: Coroutine[Any, Any, ExecutionResult], disconnected: asyncio.Event | None
    ) -> ExecutionResult:
        """Return the result of ``call``.

        On cancellation, and when ``disconnected`` is set, the call is cancelled and its process
        tree has ended before this returns. Raises ``RyeError`` if the client disconnects or the
        server stops.
        """
        task = asyncio.create_task(call)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        hangup = None if disconnected is None else asyncio.create_task(disconnected.wait())
        try:
            waiting: set[asyncio.Task[Any]] = {task} if hangup is None else {task, hangup}
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            if hangup is not None:
                hangup.cancel()
            await cancel_and_wait(task)
        if task.cancelled():
            raise RyeError(
                "the call was cancelled", hint="call again if the result is still needed"
            )
        return task.result()

    def cancel_all(self) -> None:
        """Start to cancel every call; ``run`` raises once its call has ended."""
        for task in list(self._tasks):
            task.cancel()

    async def wait_all(self) -> None:
        """Wait until no call is running."""
        if self._tasks:
            await asyncio.wait(self._tasks)


async def cancel_and_wait(task: asyncio.Task[Any]) -> None:
    """Cancel a task and wait until it has ended, even if the caller is cancelled meanwhile."""
    if task.done():
        return
    task.cancel()
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        raise cancelled


async def wait_at_most(event: asyncio.Event, seconds: float) -> None:
    """Wait for an event, but no longer than ``seconds``."""
    try:
        async with asyncio.timeout(seconds):
            await event.wait()
    except TimeoutError:
        return
