"""The whole output of calls whose result was cut, for as long as the server runs.

It is kept in files without a name, which nobody else can open and which disappear with the process.
What does not fit any more is forgotten, the oldest first. Ids cannot be guessed, so over HTTP a
client reads only what it was given.
"""

from __future__ import annotations

import os
import threading
from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import IO, NamedTuple

from rye.errors import RyeError

MAX_PAGE = 256 * 1024
"""Bytes of a page. Clients have been seen to end the session over messages of a few MB."""

_MAX_OUTPUTS = 50
_MAX_BYTES = 256 * 1024 * 1024
_UTF8_TAIL = 3


class Page(NamedTuple):
    """A part of a stream, in bytes."""

    data: bytes
    offset: int
    size: int
    """Of the whole stream."""

    @property
    def end(self) -> int:
        """Where the next page starts."""
        return self.offset + len(self.data)


class Outputs:
    """What is kept."""

    def __init__(self, *, max_outputs: int = _MAX_OUTPUTS, max_bytes: int = _MAX_BYTES) -> None:
        self._max_outputs = max_outputs
        self._max_bytes = max_bytes
        self._kept: OrderedDict[str, dict[str, IO[bytes]]] = OrderedDict()
        self._sizes: dict[str, int] = {}
        # Lines are read in a thread. A descriptor that is closed meanwhile may become that of
        # another client's output.
        self._closing = threading.Lock()

    def keep(self, streams: Mapping[str, bytes]) -> str:
        """Keep the streams of one call and return their id. Raises ``OSError``."""
        # Most sessions cut nothing, and their start should not wait for these.
        import secrets
        import tempfile

        output_id = secrets.token_hex(8)
        files: dict[str, IO[bytes]] = {}
        try:
            for name, data in streams.items():
                file = files[name] = tempfile.TemporaryFile("w+b", buffering=0)  # noqa: SIM115 - kept
                file.write(data)
        except OSError:
            _close(files)
            raise
        self._kept[output_id] = files
        self._sizes[output_id] = sum(map(len, streams.values()))
        while len(self._kept) > self._max_outputs or sum(self._sizes.values()) > self._max_bytes:
            oldest, forgotten = self._kept.popitem(last=False)
            del self._sizes[oldest]
            with self._closing:
                _close(forgotten)
        return output_id

    def page(self, output_id: str, stream: str, offset: int = 0, length: int = MAX_PAGE) -> Page:
        """Return a part of a stream that ends between two characters.

        Raises ``RyeError`` if the output is not kept.
        """
        file = self._file(output_id, stream)
        size = os.fstat(file.fileno()).st_size
        data = os.pread(file.fileno(), min(length, MAX_PAGE), offset)
        if offset + len(data) < size:
            data = _whole_characters(data)
        return Page(data, offset, size)

    def lines(self, output_id: str, stream: str) -> Iterator[str]:
        """Yield the lines of a stream as text. Raises ``RyeError`` if the output is not kept."""
        with self._closing:
            descriptor = os.dup(self._file(output_id, stream).fileno())
        rest, offset = b"", 0
        try:
            while data := os.pread(descriptor, MAX_PAGE, offset):
                offset += len(data)
                *whole, rest = (rest + data).split(b"\n")
                for line in whole:
                    yield line.decode("utf-8", "replace")
            if rest:
                yield rest.decode("utf-8", "replace")
        finally:
            os.close(descriptor)

    def close(self) -> None:
        """Forget everything."""
        with self._closing:
            while self._kept:
                _close(self._kept.popitem()[1])
        self._sizes.clear()

    def _file(self, output_id: str, stream: str) -> IO[bytes]:
        files = self._kept.get(output_id)
        if files is None:
            raise RyeError(
                f"no output {output_id[:40]!r} is kept", hint="run the tool again for a new one"
            )
        if stream not in files:
            raise RyeError(
                f"output {output_id!r} has no stream {stream[:40]!r}",
                hint=f"use {' or '.join(files)}",
            )
        return files[stream]


def _close(files: Mapping[str, IO[bytes]]) -> None:
    for file in files.values():
        file.close()


def _whole_characters(data: bytes) -> bytes:
    """Leave out the beginning of a character at the end of some UTF-8 text."""
    for cut in range(min(_UTF8_TAIL, len(data)) + 1):
        end = len(data) - cut
        try:
            data[max(0, end - 4) : end].decode()
        except UnicodeDecodeError as error:
            if error.start > 0 and error.reason == "unexpected end of data":
                return data[: max(0, end - 4) + error.start]
            continue
        return data[:end]
    return data
