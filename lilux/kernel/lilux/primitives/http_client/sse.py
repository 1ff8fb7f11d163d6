"""A parser of server-sent events (WHATWG HTML standard, "Interpreting an event stream").

The parser of httpx2 deviates from the standard: it keeps a byte order mark, dispatches blocks
without data and an event that ends in a single CR at the end of the stream, uses the ``charset``
instead of UTF-8, and delays an event that ends in CR until the next chunk.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass

_LINE_END = rb"\r\n|\r|\n"
_BOM = b"\xef\xbb\xbf"
_MAX_RETRY_DIGITS = 18


@dataclass(frozen=True, kw_only=True)
class SseEvent:
    """One dispatched event; ``retry`` is in milliseconds, ``None`` if its block has none."""

    data: str
    event: str = "message"
    id: str = ""
    retry: int | None = None


class SseEventTooLargeError(Exception):
    """An event, or a line without an end, is larger than the limit."""


class SseParser:
    """Turns chunks of bytes into events, wherever the chunks are split.

    Memory is limited by ``max_event_bytes``, the size of all lines of one event. An event without
    its final blank line at the end of the stream is dropped, so there is nothing to flush.
    """

    def __init__(self, max_event_bytes: int) -> None:
        self._max_event_bytes = max_event_bytes
        self._tail: list[bytes] = []
        self._tail_size = 0
        self._event_size = 0
        self._after_cr = False
        self._first_line = True
        self._data: list[str] = []
        self._event = ""
        self._id = ""
        self._retry: int | None = None

    def feed(self, chunk: bytes) -> Iterator[SseEvent]:
        """Yield the events that ``chunk`` completes.

        Raises :class:`SseEventTooLargeError`, after yielding the events before that one.
        """
        if not chunk:
            return
        if self._after_cr and chunk.startswith(b"\n"):
            chunk = chunk[1:]
        # The line is complete; an LF at the start of the next chunk belongs to this CR.
        self._after_cr = chunk.endswith(b"\r") if chunk else False
        *lines, tail = re.split(_LINE_END, chunk)
        for line in lines:
            self._append(line)
            whole = b"".join(self._tail)
            self._tail.clear()
            self._tail_size = 0
            event = self._line(whole)
            if event is not None:
                yield event
        self._append(tail)

    def _append(self, piece: bytes) -> None:
        self._tail.append(piece)
        self._tail_size += len(piece)
        if self._event_size + self._tail_size > self._max_event_bytes:
            raise SseEventTooLargeError(f"an event is larger than {self._max_event_bytes} bytes")

    def _line(self, line: bytes) -> SseEvent | None:
        if self._first_line:
            self._first_line = False
            line = line.removeprefix(_BOM)
        if not line:
            return self._dispatch()
        if line.startswith(b":"):
            return None
        self._event_size += len(line)
        name, _, value = line.decode("utf-8", errors="replace").partition(":")
        self._field(name, value.removeprefix(" "))
        return None

    def _field(self, name: str, value: str) -> None:
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._event = value
        elif name == "id" and "\0" not in value:
            self._id = value
        elif (
            name == "retry"
            and value.isascii()
            and value.isdigit()
            and len(value) <= _MAX_RETRY_DIGITS
        ):
            self._retry = int(value)

    def _dispatch(self) -> SseEvent | None:
        event = None
        if self._data:
            event = SseEvent(
                data="\n".join(self._data),
                event=self._event or "message",
                id=self._id,
                retry=self._retry,
            )
        self._data = []
        self._event = ""
        self._retry = None
        self._event_size = 0
        return event
