"""The two ways in which clients speak the protocol.

Clients of 2024-11-05 to 2025-11-25 open a connection with a handshake. Clients of 2026-07-28 send
an envelope with each request instead: their version and their capabilities, in ``_meta``.
"""

from __future__ import annotations

from typing import Any, Final, Literal, TypeVar

import msgspec

from rye.mcp.protocol.errors import INVALID_PARAMS, UNSUPPORTED_VERSION, ProtocolError
from rye.mcp.protocol.types import ClientCapabilities, Implementation, LogLevel

S = TypeVar("S", bound=msgspec.Struct)
Era = Literal["handshake", "stateless"]

HANDSHAKE_VERSIONS: Final = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS_VERSIONS: Final = ("2026-07-28",)

_PREFIX = "io.modelcontextprotocol/"
VERSION_KEY: Final = f"{_PREFIX}protocolVersion"
CAPABILITIES_KEY: Final = f"{_PREFIX}clientCapabilities"
SERVER_INFO_KEY: Final = f"{_PREFIX}serverInfo"
SUBSCRIPTION_KEY: Final = f"{_PREFIX}subscriptionId"

# Results that a client may keep; 2026-07-28 requires to say for how long.
_CACHEABLE = frozenset(
    {
        "server/discover",
        "tools/list",
        "resources/list",
        "resources/templates/list",
        "resources/read",
    }
)

_NAMES = {
    "progress_token": "progressToken",
    "protocol_version": VERSION_KEY,
    "capabilities": CAPABILITIES_KEY,
    "client_info": f"{_PREFIX}clientInfo",
    "log_level": f"{_PREFIX}logLevel",
}


class RequestMeta(msgspec.Struct, frozen=True, rename=_NAMES):
    """What a client says about one request, in ``_meta``.

    Only clients of 2026-07-28 send more than the token.
    """

    progress_token: int | str | None = None
    protocol_version: str = ""
    capabilities: ClientCapabilities = ClientCapabilities()
    client_info: Implementation | None = None
    log_level: LogLevel | None = None
    traceparent: Any = None
    """The trace context of W3C, if it is a string."""


class _HandshakeMeta(msgspec.Struct, frozen=True, rename=_NAMES):
    """In older revisions the other names have no meaning."""

    progress_token: int | str | None = None
    traceparent: Any = None


def has_envelope(params: dict[str, Any] | None) -> bool:
    """Return True if a client of 2026-07-28 sent these parameters."""
    meta = (params or {}).get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def read_meta(era: Era, params: dict[str, Any] | None) -> RequestMeta:
    """Return the ``_meta`` of a request. Raises ``ProtocolError`` if it is malformed."""
    meta = (params or {}).get("_meta")
    if era == "handshake":
        if meta is None:
            return RequestMeta()
        known = convert(meta, _HandshakeMeta, "params._meta")
        return RequestMeta(progress_token=known.progress_token, traceparent=known.traceparent)
    _require_envelope(meta)
    return convert(meta, RequestMeta, "params._meta")


def _require_envelope(meta: object) -> None:
    if not isinstance(meta, dict):
        raise ProtocolError(
            INVALID_PARAMS,
            f"params._meta is missing; send an object with {VERSION_KEY} and {CAPABILITIES_KEY}",
        )
    missing = [key for key in (VERSION_KEY, CAPABILITIES_KEY) if key not in meta]
    if missing:
        raise ProtocolError(
            INVALID_PARAMS, f"params._meta is incomplete; add {' and '.join(missing)}"
        )
    version = meta[VERSION_KEY]
    if not isinstance(version, str):
        raise ProtocolError(INVALID_PARAMS, f"{VERSION_KEY} is not a string; send a version")
    if version not in STATELESS_VERSIONS:
        raise unsupported_version(version)


def unsupported_version(requested: object) -> ProtocolError:
    """Return the error for a version that this connection does not serve."""
    data: dict[str, Any] = {"supported": list(STATELESS_VERSIONS)}
    if isinstance(requested, str):
        data["requested"] = requested
    return ProtocolError(
        UNSUPPORTED_VERSION,
        f"this connection serves only {', '.join(STATELESS_VERSIONS)}; "
        "use that version, or connect again",
        data,
    )


def convert(value: Any, kind: type[S], what: str) -> S:
    """Return ``value`` as this type. Raises ``ProtocolError`` without repeating any value."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        # The path is ours; what stands there may be secret and is not part of the message.
        raise ProtocolError(INVALID_PARAMS, f"{what} is invalid: {_reason(error)}") from None


def _reason(error: msgspec.ValidationError) -> str:
    text = str(error)
    return text if text.startswith(("Expected ", "Object missing ")) else "unexpected value"


def with_envelope(method: str, result: Any, server: Implementation) -> dict[str, Any]:
    """Return a result with the fields that 2026-07-28 requires in addition."""
    body: dict[str, Any] = msgspec.to_builtins(result)
    body.setdefault("resultType", "complete")
    if method in _CACHEABLE:
        # It can change at any time; a client that listens is notified.
        body = {"ttlMs": 0, "cacheScope": "private", **body}
    info = {SERVER_INFO_KEY: msgspec.to_builtins(server)}
    body["_meta"] = {**info, **body.get("_meta", {})}
    return body
