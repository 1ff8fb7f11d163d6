"""One connection to ``lilux-proc`` for each event loop."""

import asyncio
import contextlib
import itertools
import os
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from typing import Any, Protocol

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess.answer import checked
from lilux.primitives.subprocess.binary import broken_off
from lilux.primitives.subprocess.process import HelperProcess
from lilux.primitives.subprocess.wire import Answer, Decoder, encode

_READ_SIZE = 256 * 1024
# How long, beyond the job's own grace, the answer to a cancel may take.
_CANCEL_SECONDS = 30.0
# How often a helper with requests in flight is asked whether it is there. One that has said nothing
# for three times as long has been stopped, and will not keep any timeout either.
_ASK_SECONDS = 10.0
_SILENCE = "lilux-proc did not answer"
# There is no such job, so this is answered at once, by all who have to be awake for a job.
_ARE_YOU_THERE = encode({"id": 0, "op": "cancel", "target": 0})


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
        # Made once: bytes of that size, for each answer, would come from the system every time.
        self._inbox = memoryview(bytearray(_READ_SIZE))
        self._ids = itertools.count(1)
        self._calls: dict[int, _Call] = {}
        self._unsent = bytearray()
        self.alive = True
        self._idle: asyncio.Future[None] | None = None
        self._watch: asyncio.TimerHandle | None = None
        self._unanswered = 0
        self.closer: AsyncGenerator[None, None] | None = None
        loop.add_reader(self._socket, self._on_readable)

    async def request(
        self,
        fields: Mapping[str, Any],
        payload: bytes = b"",
        chunks: Chunks | None = None,
    ) -> Answer:
        """Sends a request and waits for its answer.

        If the waiting task is cancelled, so is the request: the job's whole tree is ended, and
        this raises ``CancelledError`` only once that is done. Raises ``ValueError`` for a request
        that cannot be sent, and :class:`HelperError` if the helper ends first; then the job's
        tree is gone as well.
        """
        number = next(self._ids)
        frame = encode({"id": number, **fields}, payload)
        call = _Call(self.loop.create_future(), chunks, lambda held: self._hold(number, held))
        self._calls[number] = call
        if self._watch is None:
            self._watch = self.loop.call_later(_ASK_SECONDS, self._ask)
        try:
            self._send(frame)
            return checked(fields["op"], await call.future)
        except asyncio.CancelledError:
            await self._end(number, call, fields.get("grace", 0))
            raise
        finally:
            self._calls.pop(number, None)
            if self._idle is not None and not self._calls and not self._idle.done():
                self._idle.set_result(None)

    async def _end(self, number: int, call: _Call, grace: float) -> None:
        """Waits for the end of a cancelled call, however often the waiting is cancelled again.

        A helper that does not end it is given up in the end.
        """
        call.chunks = None
        self._send(encode({"id": 0, "op": "cancel", "target": number}))
        give_up = self.loop.call_later(grace + _CANCEL_SECONDS, self._give_up)
        try:
            while number in self._calls:
                call.future = self.loop.create_future()
                with contextlib.suppress(asyncio.CancelledError, HelperError):
                    await call.future
        finally:
            give_up.cancel()

    def _ask(self) -> None:
        """From time to time, as long as there are requests in flight."""
        self._watch = None
        if not self.alive or not self._calls:
            self._unanswered = 0
        elif self._unanswered == 2:
            self._give_up()
        else:
            self._unanswered += 1
            self._watch = self.loop.call_later(_ASK_SECONDS, self._ask)
            self._send(_ARE_YOU_THERE)

    def _hold(self, number: int, held: bool) -> None:
        if number in self._calls:
            op = "pause" if held else "resume"
            self._send(encode({"id": 0, "op": op, "target": number}))

    async def idle(self) -> None:
        """Returns when no request is in flight."""
        if self._calls:
            self._idle = self.loop.create_future()
            await self._idle

    async def close(self) -> None:
        """Ends the helper and its jobs, and returns when they are gone."""
        self._break_off("the connection to lilux-proc was closed")
        gone = self.loop.create_future()

        def end() -> None:
            self._process.close()
            # A loop that was closed meanwhile has nobody left who waits.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(gone.set_result, None)

        # Not in the loop's executor, which may have been shut down before.
        self._in_a_thread(end)
        await gone

    def abandon(self) -> None:
        """Ends the helper of a loop that was closed without a word to us."""
        self.alive = False
        self._in_a_thread(self._process.close)

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
            size = self._socket.recv_into(self._inbox)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            size = 0
        if not size:
            self._on_end("lilux-proc ended unexpectedly")
            return
        self._unanswered = 0
        try:
            for answer in self._decoder.feed(self._inbox[:size]):
                self._dispatch(answer)
        except (ValueError, KeyError, TypeError):
            self._on_end("lilux-proc and this program do not understand each other")

    def _dispatch(self, answer: Answer) -> None:
        kind = answer.header["kind"]
        call = self._calls.get(answer.header["id"])
        if call is None:
            if kind == "error" and answer.header["id"] == 0:
                # It does not know whose frame that was, so somebody would wait in vain.
                raise ValueError("lilux-proc could not read a frame")
            return
        if kind in ("stdout", "stderr"):
            if call.chunks is not None:
                call.chunks.take(kind, answer.payload, call.hold)
            return
        del self._calls[answer.header["id"]]
        if not call.future.done():
            call.future.set_result(answer)

    def _on_end(self, reason: str) -> None:
        if self.alive:
            self._break_off(reason)
            # The helper's last act may take some milliseconds, which are not this loop's.
            self._in_a_thread(self._process.close)

    def _give_up(self) -> None:
        if self.alive:
            self._break_off(_SILENCE)
            self._in_a_thread(self._process.kill)

    @staticmethod
    def _in_a_thread(act: Callable[[], None]) -> None:
        threading.Thread(target=act, name="lilux-proc end", daemon=True).start()

    def _break_off(self, reason: str) -> None:
        if self.alive:
            self.alive = False
            if self._watch is not None:
                self._watch.cancel()
            self.loop.remove_reader(self._socket)
            self.loop.remove_writer(self._socket)
        calls, self._calls = self._calls, {}
        for call in calls.values():
            if not call.future.done():
                call.future.set_exception(broken_off(reason))


_helpers: dict[asyncio.AbstractEventLoop, Helper] = {}
# Loops that are closing their generators and take no new ones. A helper that is started by another
# generator's last act there ends when it is collected, or at exit.
_ending: "weakref.WeakSet[asyncio.AbstractEventLoop]" = weakref.WeakSet()
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
    _helpers[loop] = helper
    for other in list(_helpers):
        if other.is_closed() and (left := _helpers.pop(other, None)) is not None:
            left.abandon()
    if loop not in _ending:
        helper.closer = _close_at_the_end(helper)
        await anext(helper.closer)
    return helper


async def _close_at_the_end(helper: Helper) -> AsyncGenerator[None, None]:
    """Suspended while the helper is in use: a loop closes its generators when it ends."""
    try:
        yield
    finally:
        if helper.alive:
            _ending.add(helper.loop)
            # What other generators of the loop do at its end may be under way.
            await helper.idle()
        # A helper that died has a successor, whose place is not ours.
        if _helpers.get(helper.loop) is helper:
            del _helpers[helper.loop]
        await helper.close()
