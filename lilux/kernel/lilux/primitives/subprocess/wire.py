"""The frame format of ``lilux-proc serve``, without I/O.

A frame is two little-endian 32-bit lengths (of the rest of the frame, and of the header), a JSON
header, and a payload of raw bytes.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator, Mapping

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_PREFIX = struct.Struct("<II")
# The limits of lilux-proc. It cannot say which request a larger frame belongs to.
MAX_HEADER = 16 * 1024 * 1024
MAX_FRAME = 512 * 1024 * 1024
_PREFIX_SIZE = _PREFIX.size
_unpack = _PREFIX.unpack_from
# `json.dumps` would create an encoder for each request, and `json.loads` would skip white space
# around each answer.
_dumps = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_raw_decode = json.JSONDecoder().raw_decode


class Encoded(dict[str, "Any"]):
    """A JSON object that many requests contain. It must not be changed: its text is kept."""

    __slots__ = ("text",)

    def __init__(self, fields: Mapping[str, Any]) -> None:
        super().__init__(fields)
        self.text = _dumps(self)


class Answer(Record, frozen=True):
    """One frame from the helper: a result, a chunk of output, or an error."""

    header: dict[str, Any]
    payload: bytes


def encode(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """Return a request frame. Surrogates in text (PEP 383) become the bytes that they stand for.

    Raises ``ValueError`` for a request that the helper cannot accept: a number that JSON lacks, or
    arguments or input beyond its limits.
    """
    try:
        head = _text(header).encode("ascii")
    except (TypeError, RecursionError) as error:
        raise ValueError(f"the request has no JSON form ({type(error).__name__})") from None
    except ValueError:
        raise ValueError("the request has a number that is not finite") from None
    if len(head) > MAX_HEADER:
        raise ValueError(
            f"arguments and environment take {len(head)} bytes, over the limit of {MAX_HEADER}; "
            "send large data as input_data"
        )
    if len(head) + len(payload) + 4 > MAX_FRAME:
        raise ValueError(
            f"input_data of {len(payload)} bytes is over the limit of {MAX_FRAME}; "
            "write it to a file and pass its path"
        )
    return b"".join((_PREFIX.pack(len(head) + len(payload) + 4, len(head)), head, payload))


def _text(header: Mapping[str, Any]) -> str:
    rest, kept = {}, ""
    for key, value in header.items():
        if type(value) is Encoded:
            kept += f',"{key}":{value.text}'
        else:
            rest[key] = value
    text = _dumps(rest)
    return f"{text[:-1]}{kept}}}" if kept else text


class Decoder:
    """Splits a stream of bytes into frames, whatever the sizes of the reads."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[Answer]:
        """Yield the frames that ``data`` completes. Raises ``ValueError`` for a malformed one."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _PREFIX_SIZE:
            total, head = _unpack(buffer)
            end = 4 + total
            if head > total - 4:
                raise ValueError("a frame of lilux-proc is shorter than its header")
            if len(buffer) < end:
                return
            body = _PREFIX_SIZE + head
            header = _parse(buffer[_PREFIX_SIZE:body].decode())
            payload = b""
            if body < end:
                with memoryview(buffer) as view:
                    payload = bytes(view[body:end])
            del buffer[:end]
            yield Answer(header, payload)


def _parse(text: str) -> Any:
    try:
        header, length = _raw_decode(text)
    except RecursionError:
        raise ValueError("a header of lilux-proc is nested too deeply") from None
    if length != len(text):
        raise ValueError("a header of lilux-proc has trailing data")
    return header
