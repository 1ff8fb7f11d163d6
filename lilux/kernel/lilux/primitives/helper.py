"""One connection to ``lilux-proc`` for each event loop."""

import asyncio
import itertools
import os
import threading
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol

from lilux.primitives.errors import HelperError
from lilux.primitives.helper_process import HelperProcess
from lilux.primitives.helper_wire import Answer, Decoder, encode

_READ_SIZE = 256 * 1024


class Chunks(Protocol):
    """Takes output while a job runs."""

    def take(self, stream: str, data: bytes, hold: Callable[[bool], None]) -> None:
        """``stream`` is ``stdout`` or ``stderr``. Must neither block nor raise.

        ``hold(True)`` stops the output of this job, and of no other, until ``hold(False)``.
        """


class _Call:
    __slots__ = ("chunks", "future", "hold")

    def __init__(
        self,
        future: asyncio.Future[Answer],
        chunks: Chunks | None,
        hold: Callable[[bool], None],
    ) -> None:
        self.future = future
        self.chunks = chunks
        self.hold = hold


class Helper:
    """The client of one helper, to be used in one event loop.

    Made by :func:`helper_of_loop`. Any number of requests may be in flight.
    """

    def __init__(self, binary: str, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._process = HelperProcess(binary)
        self._socket = self._process.socket
        self._decoder = Decoder()
        self._ids = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        self._unsent = bytearray()
        self.alive = True
        self.closer: AsyncGenerator[None, None] | None = None
        loop.add_reader(self._socket, self._on_readable)

    async def request(
        self, fields: Mapping[str, Any], payload: bytes = b"", chunks: Chunks | None = None
    ) -> Answer:
        """Sends a request and waits for its answer.

        If the waiting task is cancelled, so is the request: the job's whole tree is ended, and
        this raises ``CancelledError`` only once that is done. Raises :class:`HelperError` if the
        helper ends first; then the job's tree is gone as well.
        """
        number = next(self._ids)
        call = _Call(self.loop.create_future(), chunks, lambda held: self._hold(number, held))
        self._calls[number] = call
        self._send(encode({"id": number, **fields}, payload))
        try:
            return await call.future
        except asyncio.CancelledError:
            await self._end(number, call)
            raise
        finally:
            self._calls.pop(number, None)

    async def _end(self, number: int, call: _Call) -> None:
        """Waits for the end of a cancelled call, however often the waiting is cancelled again."""
        call.chunks = None
        self._send(encode({"id": 0, "op": "cancel", "target": number}))
        while number in self._calls:
            call.future = self.loop.create_future()
            try:
                await call.future
            except asyncio.CancelledError:
                continue
            except HelperError:
                pass
            return

    def _hold(self, number: int, held: bool) -> None:
        if number in self._calls:
            op = "pause" if held else "resume"
            self._send(encode({"id": 0, "op": op, "target": number}))

    async def close(self) -> None:
        """Ends the helper and its jobs, and returns when they are gone."""
        self._break_off("the connection to lilux-proc was closed")
        await self.loop.run_in_executor(None, self._process.close)

    def _send(self, data: bytes) -> None:
        if not self.alive:
            self._break_off("lilux-proc has ended")
            return
        if not self._unsent:
            try:
                sent = self._socket.send(data)
            except (BlockingIOError, InterruptedError):
                sent = 0
            except OSError:
                # The reading side sees the end, too, after the answers that came before it.
                return
            if sent == len(data):
                return
            data = data[sent:]
            self.loop.add_writer(self._socket, self._on_writable)
        self._unsent += data

    def _on_writable(self) -> None:
        try:
            with memoryview(self._unsent) as view:
                sent = self._socket.send(view[:_READ_SIZE])
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            sent = len(self._unsent)
        del self._unsent[:sent]
        if not self._unsent:
            self.loop.remove_writer(self._socket)

    def _on_readable(self) -> None:
        try:
            data = self._socket.recv(_READ_SIZE)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            data = b""
        if not data:
            self._on_end("lilux-proc ended unexpectedly")
            return
        try:
            for answer in self._decoder.feed(data):
                self._dispatch(answer)
        except ValueError:
            self._on_end("lilux-proc sent something that is no frame")

    def _dispatch(self, answer: Answer) -> None:
        call = self._calls.get(answer.header["id"])
        if call is None:
            return
        kind = answer.header["kind"]
        if kind in ("stdout", "stderr"):
            if call.chunks is not None:
                call.chunks.take(kind, answer.payload, call.hold)
            return
        del self._calls[answer.header["id"]]
        if not call.future.done():
            call.future.set_result(answer)

    def _on_end(self, reason: str) -> None:
        self._break_off(reason)
        # The helper's last act may take some milliseconds, which are not this loop's.
        threading.Thread(target=self._process.close, name="lilux-proc end", daemon=True).start()

    def _break_off(self, reason: str) -> None:
        if self.alive:
            self.alive = False
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(
                    HelperError(
                        f"{reason} while a request was in flight; whatever it had started is "
                        "being ended, and the next call starts a new helper: try again"
                    )
                )


_helpers: dict[asyncio.AbstractEventLoop, Helper] = {}
_lock = threading.Lock()
# After a fork, the loops of the parent are not the child's.
os.register_at_fork(after_in_child=_helpers.clear)


async def helper_of_loop(find: Callable[[], str]) -> Helper:
    """The helper of the running loop, started on first use and again after its death.

    ``find`` gives the path of the binary if one has to be started. The helper ends with its loop.
    """
    loop = asyncio.get_running_loop()
    helper = _helpers.get(loop)
    if helper is not None and helper.alive:
        return helper
    helper = Helper(find(), loop)
    with _lock:
        for other in [each for each in _helpers if each.is_closed()]:
            del _helpers[other]
        _helpers[loop] = helper
    helper.closer = _close_at_the_end(helper)
    await anext(helper.closer)
    return helper


async def _close_at_the_end(helper: Helper) -> AsyncGenerator[None, None]:
    """Suspended while the helper is in use: a loop closes its generators when it ends."""
    try:
        yield
    finally:
        _helpers.pop(helper.loop, None)
        await helper.close()
