"""Output of a running job on its way to a callback."""

import asyncio
import inspect
from collections import deque
from collections.abc import Callable
from types import TracebackType

from lilux.primitives.subprocess.text import STREAMS, OutputText, callback_failure

# Bytes that wait for a slow callback before the job is held up.
_FULL = 4 * 1024 * 1024


class OutputRelay:
    """Decodes chunks and hands them to a callback, in order, while the job runs.

    The callback may be a coroutine function, and slow: then the job waits for it, so memory stays
    bounded. If it raises, it is not called again, and ``error`` says why; the job goes on.
    Leaving the context returns when everything has been handed over.
    """

    def __init__(self, callback: Callable[[str, str], object]) -> None:
        self.error: str | None = None
        self._callback = callback
        self._texts = OutputText()
        self._waiting: deque[tuple[str, bytes, bool]] = deque()
        self._bytes = 0
        self._release: Callable[[], None] | None = None
        self._wake = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def take(self, stream: str, data: bytes, hold: Callable[[bool], None]) -> None:
        """Called for each chunk; ``hold`` stops the job's output and lets it go on."""
        self._put(stream, data, final=False)
        if self._bytes > _FULL and self._release is None:
            hold(True)
            self._release = lambda: hold(False)

    def _put(self, stream: str, data: bytes, *, final: bool) -> None:
        self._waiting.append((stream, data, final))
        self._bytes += len(data)
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
            self._waiting.append(("", b"", True))
            self._wake.set()
            await self._task
        else:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _run(self) -> None:
        while True:
            while not self._waiting:
                self._wake.clear()
                await self._wake.wait()
            stream, data, final = self._waiting.popleft()
            if not stream:
                return
            self._bytes -= len(data)
            if self._release is not None and self._bytes <= _FULL // 2:
                self._release()
                self._release = None
            text = self._texts.decode(stream, data, final=final)
            if text and self.error is None:
                await self._hand_over(stream, text)

    async def _hand_over(self, stream: str, text: str) -> None:
        try:
            outcome = self._callback(stream, text)
            if inspect.isawaitable(outcome):
                await outcome
        except asyncio.CancelledError as error:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                raise
            # Nobody cancelled this task: the callback let out what ended something of its own.
            self.error = callback_failure(error)
        except Exception as error:  # noqa: BLE001 - the callback is foreign; the job must go on
            self.error = callback_failure(error)
