"""Talking to a job while it runs: through its stdin, and through a channel of its own."""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable

from lilux.primitives.subprocess.session import CHANNEL, InputTaken, Output

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Protocol

    from lilux.primitives.subprocess.session import Event

    class Feeder(Protocol):
        """Writes to one running job."""

        def __call__(self, stream: str, data: bytes, *, last: bool) -> None: ...


STDIN = "stdin"
# A pipe holds as much, so a larger piece is not taken sooner.
_PIECE = 64 * 1024


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

    # For transports.

    def begin(self, feeder: Feeder) -> None:
        """The job has started."""
        self._feeder = feeder
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
        return False

    def end(self) -> None:
        """The job has ended."""
        self._feeder = None
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
