"""The blocking transport: running a process from a program without an event loop.

For a program that starts, runs one job and ends: importing asyncio takes several times as long as
such a job.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping
from functools import partial
from io import FileIO

from lilux.primitives.errors import ConfigurationError, HelperError
from lilux.primitives.subprocess import session
from lilux.primitives.subprocess.binary import (
    connection_failed,
    find_helper,
    start_helper,
    wait_for_end,
)
from lilux.primitives.subprocess.output import OnAutopsy, OnOutput, OutputCallback
from lilux.primitives.subprocess.request import asking_for_autopsy, exec_request
from lilux.primitives.subprocess.result import SubprocessResult, exec_result, not_started
from lilux.primitives.subprocess.session import (
    STREAMS,
    Call,
    Output,
    Session,
    connection_lost,
)
from lilux.primitives.subprocess.wire import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any, Self

    from lilux.primitives.subprocess.confinement import ConfinementReport
    from lilux.primitives.subprocess.dialogue import Dialogue

_READ_SIZE = 256 * 1024
# A forked child closes these: one that stayed open would keep the helper of the parent alive.
_open_pipes: set[FileIO] = set()
# Helpers without a job whose connection is closed. They end soon and are reaped later.
_leaving: set[int] = set()


class BlockingSubprocess:
    """``SubprocessPrimitive.execute`` as a plain function, for one job at a time in one thread.

    Use it as a context manager, or call :meth:`close` to end the helper. The helper, the job and
    everything that the job started also end when this process dies.
    """

    def __init__(self) -> None:
        self._helper = BlockingHelper()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def start_early(self) -> None:
        """Start the helper now, so that it gets ready while this program does other things.

        If it cannot be started, :meth:`execute` raises the error.
        """
        try:
            self._helper.start(find_helper())
        except ConfigurationError:
            return

    def execute(
        self,
        config: Mapping[str, Any],
        params: Mapping[str, Any] | None = None,
        *,
        on_output: OnOutput | None = None,
        on_autopsy: OnAutopsy | None = None,
        dialogue: Dialogue | None = None,
    ) -> SubprocessResult:
        """Run a job as ``SubprocessPrimitive.execute`` does, and block until it has ended.

        ``on_output`` must be a plain function. ``KeyboardInterrupt``, and any other exception of a
        signal handler, is raised after the whole process tree has ended.
        """
        try:
            request = exec_request(config, {} if params is None else params)
            fields, data = asking_for_autopsy(request.fields, on_autopsy), request.input_data
            if dialogue is not None:
                fields = {**fields, **dialogue.fields}
            if not self._helper.alive:
                self._helper.start(find_helper())
            if on_output is None:
                answer = self._helper.request(
                    fields, data, on_autopsy=on_autopsy, dialogue=dialogue
                )
                return exec_result(answer, None)
            output = OutputCallback(on_output)
            answer = self._helper.request(
                {**fields, "stream": True},
                data,
                lambda *piece: _deliver(output, *piece),
                on_autopsy,
                dialogue,
            )
            for stream in STREAMS:
                _deliver(output, stream, b"", final=True)
            return exec_result(answer, output.error)
        except ValueError as error:
            return not_started(str(error))

    def probe_confinement(self) -> ConfinementReport:
        """Return which parts of a confinement this machine can enforce."""
        from lilux.primitives.subprocess.confinement import probe_report

        if not self._helper.alive:
            self._helper.start(find_helper())
        return probe_report(self._helper.request({"op": "probe"}).header)

    def close(self) -> None:
        """End the helper. May be called again; a later :meth:`execute` starts another helper."""
        self._helper.close()


def _deliver(output: OutputCallback, stream: str, data: bytes, *, final: bool = False) -> None:
    outcome = output.deliver(stream, data, final=final)
    if hasattr(outcome, "__await__"):
        # An unused coroutine is closed, which avoids the warning that it was never awaited.
        close = getattr(outcome, "close", None)
        if close is not None:
            close()
        output.error = "the output callback is a coroutine function; pass a plain function here"


class BlockingHelper:
    """The client of one helper, connected by two pipes, with one call at a time.

    The helper and its job end with :meth:`close`, and when this process ends in any way.
    """

    def __init__(self) -> None:
        # Objects, not numbers: a number that is closed twice may belong to another file by then.
        self._pipes: list[FileIO] = []
        self._session = Session()
        self._pid = 0
        self._has_job = False
        self._mid_write = False

    @property
    def alive(self) -> bool:
        """True if a request may be sent."""
        return self._pid != 0

    def start(self, binary: str) -> None:
        """Start a helper.

        Raises :class:`~lilux.primitives.errors.ConfigurationError` if that fails.
        """
        self.close()
        self._session = Session()
        self._has_job = self._mid_write = False
        try:
            self._pipes += map(FileIO, os.pipe(), "rw")
            self._pipes += map(FileIO, os.pipe(), "rw")
            _open_pipes.update(self._pipes)
            theirs_to_read, self._writing, self._reading, theirs_to_write = self._pipes
            self._pid = start_helper(binary, theirs_to_read.fileno(), theirs_to_write.fileno())
            theirs_to_read.close()
            theirs_to_write.close()
            os.set_blocking(self._writing.fileno(), False)
            os.set_blocking(self._reading.fileno(), False)
        except OSError as error:
            self.close()
            raise connection_failed(error) from error
        except BaseException:
            self.close()
            raise

    def request(
        self,
        fields: Mapping[str, Any],
        payload: bytes = b"",
        take: Callable[[str, bytes], None] | None = None,
        on_autopsy: OnAutopsy | None = None,
        dialogue: Dialogue | None = None,
    ) -> Answer:
        """Send a request and wait for its answer; ``take`` gets output while the job runs.

        An exception of ``take`` or of a signal handler (``KeyboardInterrupt``) is raised after the
        whole process tree of the job has ended, with the grace that the request asks for. Raises
        ``ValueError`` for a request that cannot be sent, and
        :class:`~lilux.primitives.errors.HelperError` if the helper ends or stops answering.
        """
        call = self._session.start(fields, payload, time.monotonic())
        self._has_job = True
        try:
            if dialogue is not None:
                dialogue.begin(partial(self._session.feed, call), partial(self._session.look, call))
            self._exchange(call, take, dialogue)
        except HelperError:
            self.close()
            raise
        except BaseException:
            self._cancel(call)
            if on_autopsy is not None and call.autopsy is not None:
                on_autopsy(call.autopsy)
            raise
        finally:
            if dialogue is not None:
                dialogue.end()
        self._has_job = False
        return call.result()

    def _exchange(
        self,
        call: Call,
        take: Callable[[str, bytes], None] | None,
        dialogue: Dialogue | None = None,
    ) -> None:
        """Send and receive until the call has ended."""
        data = b""
        while True:
            # At first, the frames that arrived with an earlier one.
            for event in self._session.receive(data):
                if dialogue is not None and dialogue.takes(event):
                    continue
                if take is not None and isinstance(event, Output):
                    take(event.stream, event.data)
            if call.ended:
                return
            self._session.tick(time.monotonic())
            self._flush()
            data = self._read(dialogue)

    def _flush(self) -> None:
        outgoing = self._session.outgoing
        if not outgoing:
            return
        # Stays true if an interrupt hides how much was written.
        self._mid_write = True
        try:
            size = os.write(self._writing.fileno(), outgoing)
        except BlockingIOError:
            size = 0
        except BrokenPipeError:
            # Reading reports the end, after the answers that came before it.
            size = len(outgoing)
        self._session.sent(size)
        self._mid_write = False

    def _read(self, dialogue: Dialogue | None) -> bytes:
        """Wait for data, room to write, input to copy, or the next tick; return the data."""
        import select

        poll = select.poll()
        poll.register(self._reading.fileno(), select.POLLIN)
        if self._session.outgoing:
            poll.register(self._writing.fileno(), select.POLLOUT)
        source = None if dialogue is None else dialogue.wanted_source
        if source is not None:
            poll.register(source, select.POLLIN)
        due = self._session.next_tick
        beside = None if dialogue is None else dialogue.beside
        if beside is not None:
            for fd, events in beside.wanted():
                poll.register(fd, events)
            due = min([one for one in (due, beside.due) if one is not None], default=None)
        ready = poll.poll(None if due is None else max(0.0, due - time.monotonic()) * 1000)
        if dialogue is not None and any(fd == source for fd, _ in ready):
            dialogue.read_source()
        if beside is not None:
            beside.serve()
        try:
            data = os.read(self._reading.fileno(), _READ_SIZE)
        except BlockingIOError:
            return b""
        if not data:
            raise connection_lost(session.ENDED)
        return data

    def _cancel(self, call: Call) -> None:
        """End the job, wait for that, and end the helper; a second interrupt does so at once."""
        try:
            # After a partial write nothing more can be sent; closing ends the job.
            if self.alive and not self._mid_write and not self._session.outgoing:
                self._session.cancel(call, time.monotonic())
                self._exchange(call, None)
        except (HelperError, KeyboardInterrupt):
            pass
        finally:
            self.close()

    def close(self) -> None:
        """End the helper; if it has a job, wait until both have ended.

        A helper without a job ends within a millisecond, so there is no need to wait. May be called
        again.
        """
        interrupt: KeyboardInterrupt | None = None
        while True:
            try:
                self._end()
                break
            except KeyboardInterrupt as error:
                interrupt = error
        if interrupt is not None:
            raise interrupt

    def _end(self) -> None:
        """Each step can be repeated, since an interrupt may come between any two."""
        for pipe in self._pipes:
            pipe.close()
            _open_pipes.discard(pipe)
        self._pipes.clear()
        if self._pid and self._has_job:
            given_up = self._session.silent
            patience = session.GIVEN_UP_END_SECONDS if given_up else session.END_SECONDS
            wait_for_end(self._pid, patience)
        elif self._pid:
            _leaving.add(self._pid)
        self._pid = 0
        _reap()


def _reap() -> None:
    for pid in list(_leaving):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _leaving.discard(pid)


def _forget_in_child() -> None:
    for pipe in _open_pipes:
        pipe.close()
    _open_pipes.clear()
    _leaving.clear()


os.register_at_fork(after_in_child=_forget_in_child)
