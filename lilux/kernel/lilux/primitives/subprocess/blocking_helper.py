"""A connection to ``lilux-proc`` for a program without an event loop: one request at a time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping
from io import FileIO

from lilux.primitives.errors import HelperError
from lilux.primitives.subprocess.answer import checked
from lilux.primitives.subprocess.binary import broken_off, no_connection, start_helper, wait_for_end
from lilux.primitives.subprocess.text import STREAMS
from lilux.primitives.subprocess.wire import Answer, Decoder, encode

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_READ_SIZE = 256 * 1024
# How long an answer may take beyond the job's own time and grace, and beyond its grace when it was
# cancelled: then the end of the connection does the same.
_PATIENCE_SECONDS = 30.0
_CANCEL_SECONDS = 5.0
_NUMBER = 1
_ABRUPT = "lilux-proc ended unexpectedly"
_SILENCE = "lilux-proc did not answer"
# After a fork these are not the child's: one that it held open would keep the helper alive.
_open_pipes: set[FileIO] = set()
# Helpers that are about to end, and whose end nobody has taken note of.
_leaving: set[int] = set()


class BlockingHelper:
    """Starts a helper, over two pipes. It ends, with its job, when :meth:`close` is called or this
    process is gone, however that comes about."""

    def __init__(self, binary: str) -> None:
        """Raises :class:`~lilux.primitives.errors.ConfigurationError` if it cannot be started."""
        _reap()
        # Objects, since a number that is closed twice may be somebody else's by then.
        self._pipes: list[FileIO] = []
        self._decoder = Decoder()
        self._has_job = False
        self._pid = 0
        try:
            self._pipes += map(FileIO, os.pipe(), "rw")
            self._pipes += map(FileIO, os.pipe(), "rw")
            _open_pipes.update(self._pipes)
            theirs_to_read, self._writing, self._reading, theirs_to_write = self._pipes
            self._pid = start_helper(binary, theirs_to_read.fileno(), theirs_to_write.fileno())
            theirs_to_read.close()
            theirs_to_write.close()
        except OSError as error:
            self.close()
            raise no_connection(error) from error
        except BaseException:
            self.close()
            raise

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
        :class:`~lilux.primitives.errors.HelperError` if the helper ends first, or does not answer
        long after the job's timeout, because somebody stopped it.
        """
        grace, timeout = fields.get("grace") or 0, fields.get("timeout")
        frame = encode({"id": _NUMBER, **fields}, payload)
        self._has_job = True
        try:
            self._send(frame)
        except BaseException:
            # Perhaps half of it is sent, so nothing more can be said on this connection.
            self.close()
            raise
        deadline = time.monotonic() + timeout + grace + _PATIENCE_SECONDS if timeout else None
        try:
            for answer in self._answers(deadline):
                if answer.header["kind"] not in STREAMS:
                    self._has_job = False
                    return checked(fields["op"], answer)
                if take is not None:
                    take(answer.header["kind"], answer.payload)
        except BaseException:
            self._cancel(grace)
            raise
        self.close()
        raise broken_off(_SILENCE)

    def close(self) -> None:
        """End the helper; if it has a job, return when that and the helper are gone.

        A helper without a job has nothing left to do but to end, which takes a millisecond that
        nobody needs to wait for. May be called again.
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
        """Each step may be taken again if an interrupt came before the next."""
        for pipe in self._pipes:
            pipe.close()
            _open_pipes.discard(pipe)
        if self._pid and self._has_job:
            wait_for_end(self._pid)
        elif self._pid:
            _leaving.add(self._pid)
        self._pid = 0
        _reap()

    def _send(self, frame: bytes) -> None:
        rest = memoryview(frame)
        try:
            while rest:
                rest = rest[os.write(self._writing.fileno(), rest) :]
        except BrokenPipeError:
            raise broken_off(_ABRUPT) from None

    def _answers(self, deadline: float | None = None) -> Iterator[Answer]:
        """What the helper says of the request, until ``deadline``, if there is one."""
        data = b""
        while True:
            # At first what came together with something that was read before.
            try:
                for answer in self._decoder.feed(data):
                    # A job that is not found when it is to be cancelled has had its answer.
                    if answer.header["id"] == _NUMBER or answer.header.get("found") is False:
                        yield answer
                    elif answer.header["kind"] == "error":
                        raise ValueError("lilux-proc could not read a frame")
            except (ValueError, KeyError, TypeError):
                self.close()
                raise broken_off(
                    "lilux-proc and this program do not understand each other"
                ) from None
            if deadline is not None and not _is_readable(self._reading.fileno(), deadline):
                return
            data = os.read(self._reading.fileno(), _READ_SIZE)
            if not data:
                self.close()
                raise broken_off(_ABRUPT)

    def _cancel(self, grace: float) -> None:
        """End the job and wait for that; a second interrupt ends it at once.

        So does an answer that does not come: the interrupt may have taken a part of it with it, or
        the helper was stopped.
        """
        try:
            if self.alive:
                self._send(encode({"id": 0, "op": "cancel", "target": _NUMBER}))
                deadline = time.monotonic() + grace + _CANCEL_SECONDS
                for answer in self._answers(deadline):
                    if answer.header["kind"] not in STREAMS:
                        break
        except (HelperError, KeyboardInterrupt):
            pass
        finally:
            self.close()


def _is_readable(descriptor: int, deadline: float) -> bool:
    import select

    poll = select.poll()
    poll.register(descriptor, select.POLLIN)
    return bool(poll.poll(max(0.0, deadline - time.monotonic()) * 1000))


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
