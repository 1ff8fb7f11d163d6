"""Talking to a job while it runs: through its stdin, and through a channel of its own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Iterable

from lilux.primitives.subprocess.session import CHANNEL, InputTaken, Looked, Output
from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from lilux.primitives.subprocess.session import Event

    class Feeder(Protocol):
        """Writes to one running job."""

        def __call__(self, stream: str, data: bytes, *, last: bool) -> None: ...

    Looker = Callable[[int, int, int], None]

    class Bystander(Protocol):
        """Has other things to do while a blocking call waits for its job."""

        @property
        def due(self) -> float | None:
            """When :meth:`serve` is due in any case, by ``time.monotonic``; ``None`` for never."""

        def wanted(self) -> Iterable[tuple[int, int]]:
            """Descriptors to wait for, and the events of ``select.poll``."""

        def serve(self) -> None:
            """Do what can be done without waiting. What it raises ends the job, and the call."""


STDIN = "stdin"
# A pipe holds as much, so a larger piece is not taken sooner.
_PIECE = 64 * 1024


class Sight(Record, frozen=True):
    """A part of one output stream of a running job."""

    start: int
    """The number of bytes before :attr:`data` in the stream."""
    data: bytes
    total: int
    """The size of the stream so far."""


class JobSight(Record, frozen=True):
    """What a running job has written so far."""

    pid: int
    stdout: Sight
    stderr: Sight


class Dialogue:
    """One conversation with one job; pass it to ``execute``.

    ``stdin`` keeps the stdin of the job open for :meth:`send`; ``source`` is a descriptor that is
    copied to it until its end, by a blocking ``execute`` only. ``channel`` names the environment
    variable with the number of a socket that the job gets: ``on_message`` gets the bytes that the
    job writes there, in order but in pieces of any size. It must not block an event loop. If it
    raises, it is not called again, and ``error`` gives the reason.

    Use all methods in the thread, or the event loop, of the call.
    """

    def __init__(
        self,
        *,
        stdin: bool = False,
        source: int | None = None,
        channel: str | None = None,
        on_message: Callable[[bytes], object] | None = None,
    ) -> None:
        self.error: str | None = None
        self.source = source
        self.beside: Bystander | None = None
        """Is served by a blocking ``execute`` each time it wakes up, and when it is due."""
        self._looker: Looker | None = None
        self._on_sight: Callable[[JobSight], object] | None = None
        self._on_message = on_message
        self._feeder: Feeder | None = None
        self._fields: dict[str, Any] = {}
        self._waiting: dict[str, deque[tuple[bytes, bool]]] = {STDIN: deque(), CHANNEL: deque()}
        self._under_way: set[str] = set()
        self._open: set[str] = set()
        if stdin or source is not None:
            self._fields["input"] = True
            self._open.add(STDIN)
        if channel is not None:
            self._fields[CHANNEL] = channel
            self._open.add(CHANNEL)

    @property
    def fields(self) -> dict[str, Any]:
        """What the request has to ask for."""
        return self._fields

    def is_open(self, stream: str) -> bool:
        """True while more may be sent on this stream."""
        return stream in self._open

    def send(self, data: bytes, *, stream: str = STDIN, last: bool = False) -> bool:
        """Queue bytes for the job; ``last`` closes the stream after them.

        Returns false if the stream is closed: by either side, or because the job has ended.
        """
        if stream not in self._open:
            return False
        if last:
            self._open.discard(stream)
        for start in range(0, len(data) or 1, _PIECE):
            end = start + _PIECE
            self._waiting[stream].append((data[start:end], last and end >= len(data)))
        self._feed_next(stream)
        return True

    def close(self, stream: str = STDIN) -> None:
        """Let the job read the end of the stream, after what was sent."""
        self.send(b"", stream=stream, last=True)

    def look(
        self,
        on_sight: Callable[[JobSight], object],
        *,
        stdout_from: int = 0,
        stderr_from: int = 0,
        limit: int = _PIECE,
    ) -> bool:
        """Look at the output of the job, from these bytes on; negative numbers count from the end.

        ``on_sight``, which must not raise, gets up to ``limit`` bytes of each stream, unless the
        job ends before. Returns false if the job does not run, or the last look was not answered.
        """
        if self._looker is None or self._on_sight is not None:
            return False
        self._on_sight = on_sight
        self._looker(stdout_from, stderr_from, limit)
        return True

    # For transports.

    def begin(self, feeder: Feeder, looker: Looker) -> None:
        """The job has started."""
        self._feeder = feeder
        self._looker = looker
        for stream in tuple(self._waiting):
            self._feed_next(stream)

    def takes(self, event: Event) -> bool:
        """True if the event belongs to the dialogue and not to the output of the job."""
        if isinstance(event, InputTaken):
            self._under_way.discard(event.stream)
            if not event.wants_more:
                self._open.discard(event.stream)
                self._waiting[event.stream].clear()
            self._feed_next(event.stream)
            return True
        if isinstance(event, Output) and event.stream == CHANNEL:
            self._receive(event.data)
            return True
        if isinstance(event, Looked):
            on_sight, self._on_sight = self._on_sight, None
            if on_sight is not None and event.header.get("found") is True:
                on_sight(_sight(event))
            return True
        return False

    def end(self) -> None:
        """The job has ended."""
        # Without the callback, which usually refers to this object, no cycle is left to collect.
        self._feeder = self._looker = self._on_sight = self._on_message = None
        self._open.clear()
        self.source = None

    @property
    def wanted_source(self) -> int | None:
        """The descriptor to read from, if the job can take more."""
        idle = STDIN not in self._under_way and not self._waiting[STDIN]
        return self.source if idle and self.is_open(STDIN) else None

    def read_source(self) -> None:
        """Copy once from the source, which is readable."""
        if self.source is None:
            return
        try:
            data = os.read(self.source, _PIECE)
        except BlockingIOError:
            return
        except OSError:
            # A terminal that was closed, for example: there is nothing more to read.
            data = b""
        if not data:
            self.source = None
        self.send(data, last=not data)

    def _receive(self, data: bytes) -> None:
        if self._on_message is None or self.error is not None:
            return
        try:
            self._on_message(data)
        except Exception as error:  # noqa: BLE001 - the callback is foreign; the job must go on
            # Not its message, which may contain a secret.
            self.error = f"the message callback failed: {type(error).__name__}"

    def _feed_next(self, stream: str) -> None:
        waiting = self._waiting[stream]
        if self._feeder is None or not waiting or stream in self._under_way:
            return
        data, last = waiting.popleft()
        self._under_way.add(stream)
        self._feeder(stream, data, last=last)


def _sight(event: Looked) -> JobSight:
    stdout, stderr = event.header["stdout"], event.header["stderr"]
    size = stdout["bytes"]
    return JobSight(
        event.header["pid"],
        Sight(stdout["start"], bytes(event.output[:size]), stdout["total"]),
        Sight(stderr["start"], bytes(event.output[size:]), stderr["total"]),
    )
