"""Lines on standard input and output, read and written by the event loop.

The event loop waits for the descriptors, not a thread: the server can stop at any time, and a
message costs no thread switches.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import os
import select
from collections.abc import Callable
from typing import Any, NamedTuple

_MAX_MESSAGE = 64 * 1024 * 1024
_READ_SIZE = 256 * 1024
_logger = logging.getLogger("rye.mcp")


class StdioDescriptors(NamedTuple):
    """Duplicates of the original standard input and output."""

    incoming: int
    outgoing: int


def claim_standard_streams() -> StdioDescriptors:
    """Reserve standard input and output for the protocol.

    Afterwards fd 0 is empty and fd 1 is stderr, so the output of a library or a child process
    cannot corrupt the protocol.
    """
    descriptors = StdioDescriptors(*(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1)))
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        # The server was started without a stderr.
        os.dup2(null, 1)
    os.close(null)
    return descriptors


class LineReader:
    """Lines from a descriptor."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._buffer = bytearray()
        self._searched = 0
        self._too_long = False

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> bytes:
        while True:
            line = self._next_line()
            if line is not None:
                return line
            await _wait_until_ready(self._fd, "reader")
            data = os.read(self._fd, _READ_SIZE)
            if not data:
                raise StopAsyncIteration
            self._buffer += data

    def _next_line(self) -> bytes | None:
        end = self._buffer.find(b"\n", self._searched)
        if end < 0:
            if len(self._buffer) > _MAX_MESSAGE:
                self._too_long = True
                self._buffer.clear()
            self._searched = len(self._buffer)
            return None
        line = bytes(self._buffer[: end + 1])
        del self._buffer[: end + 1]
        self._searched = 0
        if self._too_long or len(line) > _MAX_MESSAGE:
            self._too_long = False
            _logger.warning("skipped a message of more than %d bytes", _MAX_MESSAGE)
            return self._next_line()
        return line


class LineWriter:
    """Lines to a descriptor.

    The descriptor stays in blocking mode, since it may be shared with a terminal. A pipe that is
    ready accepts ``PIPE_BUF`` bytes without blocking.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    async def write(self, line: bytes) -> None:
        """Write all of it. Raises ``BrokenPipeError`` if the client has disconnected."""
        rest = memoryview(line)
        while rest:
            if not self._poll.poll(0):
                await _wait_until_ready(self._fd, "writer")
            rest = rest[os.write(self._fd, rest[: select.PIPE_BUF]) :]


async def _wait_until_ready(fd: int, role: str) -> None:
    """Wait until the descriptor can be read from ("reader") or written to ("writer")."""
    loop = asyncio.get_running_loop()
    add: Callable[..., Any] = getattr(loop, f"add_{role}")
    remove: Callable[[int], Any] = getattr(loop, f"remove_{role}")
    ready = loop.create_future()

    def on_ready() -> None:
        remove(fd)
        if not ready.done():
            ready.set_result(None)

    try:
        add(fd, on_ready)
    except PermissionError:
        # A regular file, which is always ready.
        return
    try:
        await ready
    finally:
        remove(fd)
