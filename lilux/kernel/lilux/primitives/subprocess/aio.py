"""The asyncio transport: one connection to ``lilux-proc`` for each event loop."""

import asyncio
import contextlib
import os
import socket
import threading
import weakref
from collections.abc import AsyncGenerator, Callable, Mapping
from functools import partial
from typing import Any, Protocol

from lilux.primitives.errors import ConfigurationError, HelperError
from lilux.primitives.subprocess import session
from lilux.primitives.subprocess.binary import connection_failed, start_helper, wait_for_end
from lilux.primitives.subprocess.dialogue import Dialogue
from lilux.primitives.subprocess.output import OnAutopsy
from lilux.primitives.subprocess.session import (
    Call,
    Ended,
    Event,
    Output,
    Session,
    connection_lost,
)
from lilux.primitives.subprocess.wire import Answer

_READ_SIZE = 256 * 1024


class HelperProcess:
    """A running helper: the socket to it, and its pid.

    It ends when the socket is closed: by :meth:`close`, when this object is collected, or when the
    interpreter exits. Its jobs end with it.
    """

    def __init__(self, binary: str) -> None:
        """Start the helper. Raises :class:`ConfigurationError` if that fails."""
        try:
            ours, theirs = socket.socketpair()
        except OSError as error:
            raise connection_failed(error) from error
        try:
            self.pid = start_helper(binary, theirs.fileno(), theirs.fileno())
        except ConfigurationError:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        self.socket = ours
        self._end = weakref.finalize(self, _end_process, ours, self.pid)
        _running.add(self)

    def close(self) -> None:
        """Close the socket and wait until the helper and all its jobs have ended.

        Blocks for some milliseconds. A helper that does not end in time is killed. May be called
        again.
        """
        self._end()

    def kill(self) -> None:
        """End a helper that does not answer, and kill it if it does not end soon."""
        if self._end.detach() is not None:
            self.socket.close()
            wait_for_end(self.pid, session.GIVEN_UP_END_SECONDS)

    def forget(self) -> None:
        """Close the socket in a forked child, without ending the helper of the parent."""
        self._end.detach()
        with contextlib.suppress(OSError):
            os.close(self.socket.detach())


_running: "weakref.WeakSet[HelperProcess]" = weakref.WeakSet()


def _end_process(connection: socket.socket, pid: int) -> None:
    connection.close()
    wait_for_end(pid, session.END_SECONDS)


class OutputSink(Protocol):
    """Takes output while a job runs."""

    def take(self, stream: str, data: bytes, pause: Callable[[bool], None]) -> None:
        """``stream`` is ``stdout`` or ``stderr``. Must neither block nor raise.

        ``pause(True)`` stops the output of this job only, until ``pause(False)``.
        """


class _Waiter:
    """The task that waits for a call, the sink for its output, and its dialogue."""

    __slots__ = ("dialogue", "future", "sink")

    def __init__(
        self, future: asyncio.Future[None], sink: OutputSink | None, dialogue: Dialogue | None
    ) -> None:
        self.future = future
        self.sink = sink
        self.dialogue = dialogue

    def wake(self) -> None:
        if not self.future.done():
            self.future.set_result(None)


class Helper:
    """The client of one helper, for use in one event loop.

    Created by :func:`helper_of_loop`. Any number of calls may be under way.
    """

    def __init__(self, binary: str, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._process = HelperProcess(binary)
        self._socket = self._process.socket
        self._session = Session()
        # Reused: a buffer of this size would be allocated by the system for each read.
        self._inbox = memoryview(bytearray(_READ_SIZE))
        self._timer: asyncio.TimerHandle | None = None
        self._is_writing = False
        self._idle: asyncio.Future[None] | None = None
        self.closer: AsyncGenerator[None, None] | None = None
        loop.add_reader(self._socket, self._on_readable)

    @property
    def alive(self) -> bool:
        """True if a request may be sent."""
        return not self._session.closed

    async def request(
        self,
        fields: Mapping[str, Any],
        payload: bytes = b"",
        sink: OutputSink | None = None,
        on_autopsy: OnAutopsy | None = None,
        dialogue: Dialogue | None = None,
        *,
        on_number: Callable[[int], None] | None = None,
    ) -> Answer:
        """Send a request and wait for its answer.

        If the waiting task is cancelled, the whole process tree of the job is ended before
        ``CancelledError`` is raised. Raises ``ValueError`` for a request that cannot be sent, and
        :class:`HelperError` if the helper ends or stops answering; then the tree is ended too.
        ``on_autopsy`` gets the autopsy of a cancelled job, if the request asks for one, and
        ``on_number`` the number of the request.
        """
        call = self._session.start(fields, payload, self.loop.time())
        if on_number is not None:
            on_number(call.number)
        waiter = call.owner = _Waiter(self.loop.create_future(), sink, dialogue)
        if dialogue is not None:
            dialogue.begin(partial(self._feed, call), partial(self._look, call))
        if self._timer is None:
            self._set_timer()
        self._flush()
        try:
            await waiter.future
        except asyncio.CancelledError:
            await self._cancel(call, waiter)
            if on_autopsy is not None and call.autopsy is not None:
                on_autopsy(call.autopsy)
            raise
        finally:
            if dialogue is not None:
                dialogue.end()
            if self._idle is not None and not self._session.busy and not self._idle.done():
                self._idle.set_result(None)
        return call.result()

    async def _cancel(self, call: Call, waiter: _Waiter) -> None:
        """Wait for the end of a cancelled call, even if the task is cancelled again."""
        waiter.sink = None
        if not call.ended:
            self._session.cancel(call, self.loop.time())
            self._flush()
        while not call.ended:
            waiter.future = self.loop.create_future()
            with contextlib.suppress(asyncio.CancelledError):
                await waiter.future

    async def idle(self) -> None:
        """Wait until no call is under way; prepared processes are not waited for."""
        if self._session.busy:
            self._idle = self.loop.create_future()
            await self._idle

    async def close(self) -> None:
        """End the helper and its jobs, and wait until they have ended."""
        self._break_off(connection_lost(session.CLOSED))
        ended = self.loop.create_future()

        def end() -> None:
            self._process.close()
            # If the loop was closed meanwhile, no task waits any more.
            with contextlib.suppress(RuntimeError):
                self.loop.call_soon_threadsafe(ended.set_result, None)

        # Not in the executor of the loop, which may have been shut down before.
        _run_in_thread(end)
        await ended

    def abandon(self) -> None:
        """End the helper of a loop that was closed without shutting down its generators."""
        self._session.close(connection_lost(session.CLOSED))
        _run_in_thread(self._process.close)

    def _on_readable(self) -> None:
        try:
            size = self._socket.recv_into(self._inbox)
        except (BlockingIOError, InterruptedError):
            return
        except OSError:
            size = 0
        try:
            if not size:
                raise connection_lost(session.ENDED)
            for event in self._session.receive(self._inbox[:size]):
                self._pass_on(event, event.call.owner)
        except HelperError as error:
            self._lose(error)

    def _pass_on(self, event: Event, waiter: _Waiter) -> None:
        if isinstance(event, Ended):
            waiter.wake()
        elif waiter.dialogue is not None and waiter.dialogue.takes(event):
            return
        elif waiter.sink is not None and isinstance(event, Output):
            waiter.sink.take(event.stream, event.data, partial(self._pause, event.call))

    def _feed(self, call: Call, stream: str, data: bytes, *, last: bool) -> None:
        self._session.feed(call, stream, data, last=last)
        self._flush()

    def _look(self, call: Call, stdout_from: int, stderr_from: int, limit: int) -> None:
        self._session.look(call, stdout_from, stderr_from, limit)
        self._flush()

    def _pause(self, call: Call, paused: bool) -> None:
        self._session.pause(call, paused=paused)
        self._flush()

    def _flush(self) -> None:
        if self._session.outgoing and not self._is_writing:
            self._on_writable()

    def _on_writable(self) -> None:
        outgoing = self._session.outgoing
        try:
            sent = self._socket.send(outgoing)
        except (BlockingIOError, InterruptedError):
            sent = 0
        except OSError:
            # Reading reports the end, after the answers that came before it.
            sent = len(outgoing)
        self._session.sent(sent)
        if bool(outgoing) != self._is_writing:
            self._is_writing = not self._is_writing
            if self._is_writing:
                self.loop.add_writer(self._socket, self._on_writable)
            else:
                self.loop.remove_writer(self._socket)

    def _set_timer(self) -> None:
        due = self._session.next_tick
        self._timer = None if due is None else self.loop.call_at(due, self._on_tick)

    def _on_tick(self) -> None:
        # A loop that was busy may call this first, although answers have arrived meanwhile.
        self._on_readable()
        try:
            self._session.tick(self.loop.time())
        except HelperError as error:
            self._lose(error)
        else:
            self._set_timer()
            self._flush()

    def _lose(self, error: HelperError) -> None:
        self._break_off(error)
        # Ending the helper may take some milliseconds, too long for the loop.
        _run_in_thread(self._process.kill if self._session.silent else self._process.close)

    def _break_off(self, error: HelperError) -> None:
        """Stop using the connection, and end all calls with ``error``."""
        if self._session.closed:
            return
        if self._timer is not None:
            self._timer.cancel()
        self.loop.remove_reader(self._socket)
        self.loop.remove_writer(self._socket)
        for call in self._session.close(error):
            call.owner.wake()


def _run_in_thread(act: Callable[[], None]) -> None:
    threading.Thread(target=act, name="lilux-proc end", daemon=True).start()


_helpers: dict[asyncio.AbstractEventLoop, Helper] = {}
# Loops that are shutting down their generators and accept no new ones. A helper that is started
# there, by the `finally` of another generator, ends when it is collected, or at exit.
_ending: "weakref.WeakSet[asyncio.AbstractEventLoop]" = weakref.WeakSet()


async def helper_of_loop(find: Callable[[], str]) -> Helper:
    """Return the helper of the running loop, started on first use and again after its death.

    ``find`` returns the path of the binary if a helper has to be started. It ends with its loop.
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
        helper.closer = _close_with_loop(helper)
        await anext(helper.closer)
    return helper


async def _close_with_loop(helper: Helper) -> AsyncGenerator[None, None]:
    """Stay suspended while the helper is in use: a loop closes its generators when it ends."""
    try:
        yield
    finally:
        if helper.alive:
            _ending.add(helper.loop)
            # Other generators of the loop may still have calls under way.
            await helper.idle()
        # A helper that died has a successor in its place.
        if _helpers.get(helper.loop) is helper:
            del _helpers[helper.loop]
        await helper.close()


def _forget_in_child() -> None:
    """After a fork, the loops and helpers belong to the parent."""
    _helpers.clear()
    for process in list(_running):
        process.forget()
    _running.clear()


os.register_at_fork(after_in_child=_forget_in_child)
