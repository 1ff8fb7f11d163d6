"""Messages between a process with calls under way and a page: JSON objects, one on each line."""

from __future__ import annotations

import json
from binascii import Error as NotBase64
from binascii import a2b_base64, b2a_base64
from collections.abc import Iterator, Mapping

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

MAX_LINE = 4 * 1024 * 1024


class Lines:
    """Splits what arrives into messages, whatever the sizes of the reads."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> Iterator[dict[str, Any]]:
        """Yield the messages that ``data`` completes. Raises ``ValueError`` for anything else."""
        *lines, self._rest = (self._rest + data).split(b"\n")
        if len(self._rest) > MAX_LINE:
            raise ValueError("a line is too long")
        for line in lines:
            try:
                message = json.loads(line)
            except RecursionError:
                raise ValueError("a line is nested too deeply") from None
            if not isinstance(message, dict):
                raise ValueError("a line is not an object")
            yield message


def line_of(message: Mapping[str, Any]) -> bytes:
    """Return a message as a line."""
    return json.dumps(message, separators=(",", ":"), default=_as_json).encode() + b"\n"


def packed(data: bytes) -> str:
    """Return bytes as text."""
    return b2a_base64(data, newline=False).decode("ascii")


def unpacked(text: object) -> bytes:
    """Return the bytes in a text; none for anything else."""
    try:
        return a2b_base64(text) if isinstance(text, str) else b""
    except (NotBase64, ValueError):
        return b""


def _as_json(value: object) -> object:
    return dict(value) if isinstance(value, Mapping) else {"type": type(value).__name__}
