"""A queue between the output of a job and an asyncio callback."""

import asyncio
import inspect
from collections import deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

from lilux.primitives.subprocess.aio import Helper
from lilux.primitives.subprocess.dialogue import Dialogue
from lilux.primitives.subprocess.output import OnAutopsy, OnOutput, OutputCallback
from lilux.primitives.subprocess.session import STREAMS
from lilux.primitives.subprocess.wire import Answer

# Bytes that may wait for a slow callback before the output of the job is paused.
_FULL = 4 * 1024 * 1024


class OutputRelay:
    """Passes output to a callback, in order, while the job runs.

    The callback may be a coroutine function. If it is slow, the job is paused, so memory stays
    bounded. If it raises, it is not called again, and ``error`` gives the reason; the job goes on.
    Leaving the context returns when all output has been passed on.
    """

    def __init__(self, callback: OnOutput) -> None:
        self._output = OutputCallback(callback)
        self._queue: deque[tuple[str, bytes, bool]] = deque()
        self._queued_bytes = 0
        self._resume: Callable[[], None] | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    @property
    def error(self) -> str | None:
        """Why the callback missed output, if it did."""
        return self._output.error

    def take(self, stream: str, data: bytes, pause: Callable[[bool], None]) -> None:
        """Queue a piece of output; ``pause(True)`` stops the output of the job."""
        self._put(stream, data, final=False)
        if self._queued_bytes > _FULL and self._resume is None:
            pause(True)
            self._resume = lambda: pause(False)

    def _put(self, stream: str, data: bytes, *, final: bool) -> None:
        self._queue.append((stream, data, final))
        self._queued_bytes += len(data)
        self._wake.set()

    async def __aenter__(self) -> "OutputRelay":
        self._task = asyncio.create_task(self._run())
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        assert self._task is not None  # noqa: S101 - set on entry
        if kind is None:
            for stream in STREAMS:
                self._put(stream, b"", final=True)
            self._put("", b"", final=True)
            await self._task
        else:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            while not self._queue:
                self._wake.clear()
                await self._wake.wait()
            stream, data, final = self._queue.popleft()
            if not stream:
                return
            self._queued_bytes -= len(data)
            if self._resume is not None and self._queued_bytes <= _FULL // 2:
                self._resume()
                self._resume = None
            await self._deliver(stream, data, final=final)

    async def _deliver(self, stream: str, data: bytes, *, final: bool) -> None:
        try:
            outcome = self._output.deliver(stream, data, final=final)
            if inspect.isawaitable(outcome):
                await outcome
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # This task was not cancelled: the callback raised it.
            self._output.fail(error)
        except Exception as error:  # noqa: BLE001 - the callback is foreign; the job must go on
            self._output.fail(error)


async def run_job(
    helper: Helper,
    fields: Mapping[str, Any],
    data: bytes,
    *,
    on_output: OnOutput | None,
    on_autopsy: OnAutopsy | None,
    dialogue: Dialogue | None,
) -> tuple[Answer, str | None]:
    """Send the request of a job; return the answer, and why ``on_output`` missed output."""
    if dialogue is not None:
        fields = {**fields, **dialogue.fields}
    if on_output is None:
        return await helper.request(fields, data, None, on_autopsy, dialogue), None
    async with OutputRelay(on_output) as relay:
        answer = await helper.request({**fields, "stream": True}, data, relay, on_autopsy, dialogue)
    return answer, relay.error
