"""Standard input and output as the wire, and as nothing else.

The SDK reads stdin in a thread that nothing can wake, so that a server told to end would wait for
its client's next word. Here the event loop waits for the descriptors themselves: it can stop at
any time, and saves two changes of threads for each message.
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


class Wire(NamedTuple):
    """The descriptors that were standard input and output."""

    incoming: int
    outgoing: int


def claim_standard_streams() -> Wire:
    """Take the wire away from everybody else in this process and below it.

    From now on fd 0 is empty and fd 1 is stderr: what a library prints or a child inherits cannot
    disturb the protocol.
    """
    wire = Wire(*(fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (0, 1)))
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    try:
        os.dup2(2, 1)
    except OSError:
        # Started without a stderr.
        os.dup2(nothing, 1)
    os.close(nothing)
    return wire


class LineReader:
    """Lines from a descriptor; as much of ``anyio.AsyncFile`` as the SDK uses."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._pieces = bytearray()
        self._searched = 0
        self._too_long = False

    def __aiter__(self) -> LineReader:
        return self

    async def __anext__(self) -> str:
        while True:
            line = self._next_line()
            if line is not None:
                return line
            await _until(self._fd, "reader")
            data = os.read(self._fd, _READ_SIZE)
            if not data:
                raise StopAsyncIteration
            self._pieces += data

    def _next_line(self) -> str | None:
        end = self._pieces.find(b"\n", self._searched)
        if end < 0:
            if len(self._pieces) > _MAX_MESSAGE:
                self._too_long = True
                self._pieces.clear()
            self._searched = len(self._pieces)
            return None
        line = bytes(self._pieces[: end + 1])
        del self._pieces[: end + 1]
        self._searched = 0
        if self._too_long or len(line) > _MAX_MESSAGE:
            self._too_long = False
            _logger.warning("a message of more than %d bytes was passed over", _MAX_MESSAGE)
            return self._next_line()
        return line.decode("utf-8", "replace")


class LineWriter:
    """Text to a descriptor; as much of ``anyio.AsyncFile`` as the SDK uses.

    The descriptor stays in blocking mode, which it may share with a terminal. What a pipe takes
    without blocking once it is ready is ``PIPE_BUF`` bytes.
    """

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._poll = select.poll()
        self._poll.register(fd, select.POLLOUT)

    async def write(self, text: str) -> None:
        """All of it. Raises ``BrokenPipeError`` if the client has gone."""
        rest = memoryview(text.encode())
        while rest:
            if not self._poll.poll(0):
                await _until(self._fd, "writer")
            rest = rest[os.write(self._fd, rest[: select.PIPE_BUF]) :]

    async def flush(self) -> None:
        """Nothing is held back."""


async def _until(fd: int, ready_for: str) -> None:
    """Returns when the descriptor can be read from or written to."""
    loop = asyncio.get_running_loop()
    add: Callable[..., Any] = getattr(loop, f"add_{ready_for}")
    remove: Callable[[int], Any] = getattr(loop, f"remove_{ready_for}")
    ready = loop.create_future()

    def notice() -> None:
        remove(fd)
        if not ready.done():
            ready.set_result(None)

    try:
        add(fd, notice)
    except PermissionError:
        # A file, which is always ready.
        return
    try:
        await ready
    finally:
        remove(fd)
