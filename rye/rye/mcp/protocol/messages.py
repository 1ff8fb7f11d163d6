"""JSON-RPC 2.0: one line is one message."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import UNSET, UnsetType

from rye.mcp.protocol.errors import ProtocolError

RequestId = int | str


class ErrorBody(msgspec.Struct, frozen=True):
    """Why a request has no result."""

    code: int
    message: str
    data: Any = None


class Message(msgspec.Struct, frozen=True):
    """A request, a notification or an answer, whichever fields it has."""

    jsonrpc: Literal["2.0"]
    id: RequestId | UnsetType | None = UNSET
    method: str | UnsetType = UNSET
    params: dict[str, Any] | None = None
    result: dict[str, Any] | UnsetType = UNSET
    error: ErrorBody | UnsetType = UNSET

    @property
    def is_request(self) -> bool:
        """True if it expects an answer. A message with the id ``null`` cannot be answered."""
        return self.method is not UNSET and isinstance(self.id, int | str)


class Unreadable(msgspec.Struct, frozen=True):
    """A line that is not a message; ``request_id`` is set if its sender waits for an answer."""

    request_id: RequestId | None


_decoder = msgspec.json.Decoder(Message)
_encoder = msgspec.json.Encoder()


def read(line: bytes) -> Message | Unreadable:
    """Parse one line. Bytes that are not UTF-8 become replacement characters."""
    try:
        return _decoder.decode(line)
    except UnicodeDecodeError:
        return read(line.decode("utf-8", "replace").encode())
    except (msgspec.DecodeError, RecursionError):
        return Unreadable(_request_id(line))


def result_line(request_id: RequestId, result: Any) -> bytes:
    """Return the answer to a request.

    Raises ``ValueError``, ``TypeError`` or ``RecursionError`` if the result is not JSON.
    """
    return _line({"jsonrpc": "2.0", "id": request_id, "result": result})


def error_line(request_id: RequestId, error: ProtocolError) -> bytes:
    """Return the answer to a request that has no result."""
    body: dict[str, Any] = {"code": error.code, "message": str(error)}
    if error.data is not None:
        body["data"] = error.data
    return _line({"jsonrpc": "2.0", "id": request_id, "error": body})


def request_line(request_id: RequestId, method: str, params: Any) -> bytes:
    """Return a request to the client."""
    return _line({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def notification_line(method: str, params: Any = None) -> bytes:
    """Return a notification."""
    body = {"jsonrpc": "2.0", "method": method}
    return _line(body if params is None else {**body, "params": params})


def encoded(result: Any) -> bytes:
    """Return a result as it is sent."""
    return _encoder.encode(result)


def _line(message: dict[str, Any]) -> bytes:
    return _encoder.encode(message) + b"\n"


def _request_id(line: bytes) -> RequestId | None:
    """Return the id of a request that is not valid, if it can be found and repeated."""
    import json

    try:
        # Unlike the decoder, this accepts what is not valid Unicode.
        message = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(message, dict) or "method" not in message:
        return None
    request_id = message.get("id")
    if isinstance(request_id, str):
        return request_id if request_id.isascii() else None
    return request_id if type(request_id) is int else None
