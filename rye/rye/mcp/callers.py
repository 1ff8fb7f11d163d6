"""Who makes a call over MCP, for the history."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rye.mcp.protocol.types import Implementation
    from rye.mcp.request import Request
    from rye.recording.record import Caller

_MAX_NAME = 100
_MAX_TRACE = 200


def caller_of(request: Request, shown: str) -> Caller:
    """Return the caller; ``shown`` is the digest of what the client was told about the tool."""
    from rye.recording.record import MCP, Caller

    trace = request.meta.traceparent
    return Caller(
        kind=MCP,
        client=request.client,
        token=request.token_name,
        traceparent=trace if isinstance(trace, str) and len(trace) <= _MAX_TRACE else "",
        shown=shown,
    )


def client_name(info: Implementation | None) -> str:
    """Return the name and version that a client gives itself, as one short line."""
    if info is None:
        return ""
    text = " ".join(f"{info.name} {info.version}".split())[:_MAX_NAME]
    return "".join([one for one in text if one.isprintable()])
