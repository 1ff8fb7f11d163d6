"""A connection to ``lilux-proc`` for a program without an event loop: one request at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping

from lilux.primitives.errors import HelperError
from lilux.primitives.helper_answer import checked
from lilux.primitives.helper_binary import broken_off, start_helper
from lilux.primitives.helper_wire import Answer, Decoder, encode
from lilux.primitives.output_text import STREAMS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_READ_SIZE = 256 * 1024
# How long, beyond the job's own grace, the answer to a cancel may take.
_CANCEL_SECONDS = 30.0
_NUMBER = 1
_SIGKILL = 9  # the module of signals builds all their names first
_ABRUPT = "lilux-proc ended unexpectedly"
# After a fork these are not the child's: one that it held open would keep the helper alive.
_descriptors: set[int] = set()
# Helpers that are about to end, and whose end nobody has taken note of.
_leaving: set[int] = set()


class BlockingHelper:
    """Starts a helper, over two pipes. It ends, with its job, when :meth:`close` is called or this
    process is gone, however that comes about."""

    def __init__(self, binary: str) -> None:
        """Raises :class:`~lilux.primitives.errors.ConfigurationError` if it cannot be started."""
        _reap()
        theirs_to_read, self._writing = os.pipe()
        self._reading, theirs_to_write = os.pipe()
        _descriptors.update((self._writing, self._reading))
        self._decoder = Decoder()
        self._has_job = False
        self._pid = 0
        try:
            self._pid = start_helper(binary, theirs_to_read, theirs_to_write)
        finally:
            os.close(theirs_to_read)
            os.close(theirs_to_write)
            if not self._pid:
                self.close()

    @property
    def alive(self) -> bool:
        """Whether a request may be made."""
        return self._pid != 0

    def request(
        self,
        fields: Mapping[str, Any],
        payload: bytes = b"",
        take: Callable[[str, bytes], None] | None = None,
    ) -> Answer:
        """Send a request and wait for its answer; ``take`` gets chunks of output meanwhile.

        Whatever ``take`` or a signal handler raises (``KeyboardInterrupt`` above all) ends the
        job's whole tree first, with the grace that the request asks for, and is raised then.
        Raises ``ValueError`` for a request that cannot be sent, and
        :class:`~lilux.primitives.errors.HelperError` if the helper ends first.
        """
        frame = encode({"id": _NUMBER, **fields}, payload)
        self._has_job = True
        try:
            self._send(frame)
        except BaseException:
            # Perhaps half of it is sent, so nothing more can be said on this connection.
            self.close()
            raise
        try:
            for answer in self._answers():
                if answer.header["kind"] not in STREAMS:
                    self._has_job = False
                    return checked(fields["op"], answer)
                if take is not None:
                    take(answer.header["kind"], answer.payload)
        except BaseException:
            self._cancel(fields.get("grace") or 0)
            raise
        raise AssertionError("answers end with an answer or an error")

    def close(self) -> None:
        """End the helper; if it has a job, return when that and the helper are gone.

        A helper without a job has nothing left to do but to end, which takes a millisecond that
        nobody needs to wait for. May be called again.
        """
        pid, self._pid = self._pid, 0
        for descriptor in (self._writing, self._reading):
            if descriptor >= 0:
                _descriptors.discard(descriptor)
                os.close(descriptor)
        self._writing = self._reading = -1
        if pid and self._has_job:
            _wait_for(pid)
        elif pid:
            _leaving.add(pid)
        _reap()

    def _send(self, frame: bytes) -> None:
        rest = memoryview(frame)
        try:
            while rest:
                rest = rest[os.write(self._writing, rest) :]
        except BrokenPipeError:
            raise broken_off(_ABRUPT) from None

    def _answers(self, deadline: float | None = None) -> Iterator[Answer]:
        """What the helper says of the request, until ``deadline``, if there is one."""
        data = b""
        while True:
            # At first what came together with something that was read before.
            try:
                for answer in self._decoder.feed(data):
                    if answer.header["id"] == _NUMBER:
                        yield answer
                    elif answer.header["kind"] == "error":
                        raise ValueError("lilux-proc could not read a frame")
            except (ValueError, KeyError, TypeError):
                self.close()
                raise broken_off(
                    "lilux-proc and this program do not understand each other"
                ) from None
            if deadline is not None and not _is_readable(self._reading, deadline):
                return
            data = os.read(self._reading, _READ_SIZE)
            if not data:
                self.close()
                raise broken_off(_ABRUPT)

    def _cancel(self, grace: float) -> None:
        """End the job and wait for that, however often the waiting is interrupted.

        A helper that does not answer at all, because somebody stopped it, is given up in the end.
        """
        deadline = time.monotonic() + grace + _CANCEL_SECONDS
        ended = not self.alive
        while not ended:
            try:
                self._send(encode({"id": 0, "op": "cancel", "target": _NUMBER}))
                ended = any(
                    answer.header["kind"] not in STREAMS for answer in self._answers(deadline)
                )
                if not ended:
                    os.kill(self._pid, _SIGKILL)
                    ended = True
            except HelperError:
                ended = True
            except KeyboardInterrupt:
                continue
        # What was interrupted may have lost a frame, so the next request gets a new connection.
        self.close()


def _is_readable(descriptor: int, deadline: float) -> bool:
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


def _wait_for(pid: int) -> None:
    interrupt: KeyboardInterrupt | None = None
    while True:
        try:
            os.waitpid(pid, 0)
            break
        except ChildProcessError:
            # Someone who waits for any child may have been faster.
            break
        except KeyboardInterrupt as error:
            interrupt = error
    if interrupt is not None:
        raise interrupt


def _reap() -> None:
    for pid in list(_leaving):
        try:
            ended, _ = os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            ended = pid
        if ended:
            _leaving.discard(pid)


def _forget_in_child() -> None:
    for descriptor in _descriptors:
        os.close(descriptor)
    _descriptors.clear()
    _leaving.clear()


os.register_at_fork(after_in_child=_forget_in_child)
