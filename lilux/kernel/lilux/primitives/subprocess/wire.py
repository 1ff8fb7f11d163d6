"""The frames of ``lilux-proc serve``, without any I/O.

A frame is two little-endian 32-bit lengths (of what follows, and of the header), a header of JSON
and a payload of raw bytes.
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
# What lilux-proc takes; a larger frame would be refused without a word of whose it was.
MAX_HEADER = 16 * 1024 * 1024
MAX_FRAME = 512 * 1024 * 1024


class Answer(Record, frozen=True):
    """One frame from the helper: a result, a chunk of output, or an error."""

    header: dict[str, Any]
    payload: bytes


def encode(header: Mapping[str, Any], payload: bytes = b"") -> bytes:
    """A request. Text that stands for undecodable bytes (PEP 383) reaches the helper as them.

    Raises ``ValueError`` for what the helper could not take: numbers that JSON does not have, and
    arguments or input beyond its limits.
    """
    try:
        head = _json(header).encode("ascii")
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


# The functions of the module `json` would make a new encoder for each request, and look for blanks
# around each answer.
_spelled = json.JSONEncoder(separators=(",", ":"), allow_nan=False).encode
_read = json.JSONDecoder().raw_decode
# An environment seldom changes from one job to the next, and is the largest part of most requests.
_last_env: tuple[Any, str] = (None, "")


def _json(header: Mapping[str, Any]) -> str:
    """The header; an environment that is the same object as the last time is not spelled again."""
    global _last_env  # noqa: PLW0603 - a memory of one entry
    env = header.get("env")
    if env is None:
        return _spelled(header)
    seen, text = _last_env
    if env is not seen:
        text = _spelled(env)
        _last_env = (env, text)
    rest = dict(header)
    del rest["env"]
    return f'{_spelled(rest)[:-1]},"env":{text}}}'


class Decoder:
    """Cuts a stream of bytes into frames, wherever it was cut before."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    def feed(self, data: bytes | memoryview) -> Iterator[Answer]:
        """The frames that ``data`` completes. Raises ``ValueError`` for what is no frame."""
        buffer = self._buffer
        buffer += data
        while len(buffer) >= _PREFIX.size:
            total, head = _PREFIX.unpack_from(buffer)
            end = 4 + total
            if head > total - 4:
                raise ValueError("a frame of lilux-proc is shorter than its header")
            if len(buffer) < end:
                return
            body = _PREFIX.size + head
            header = _parsed(buffer[_PREFIX.size : body])
            with memoryview(buffer) as view:
                payload = bytes(view[body:end])
            del buffer[:end]
            yield Answer(header, payload)


def _parsed(head: bytearray) -> Any:
    text = head.decode()
    try:
        header, length = _read(text)
    except RecursionError:
        raise ValueError("a header of lilux-proc is nested too deeply") from None
    if length != len(text):
        raise ValueError("a frame of lilux-proc has more than its header")
    return header
