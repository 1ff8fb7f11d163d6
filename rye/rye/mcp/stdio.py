"""Serving one client on standard input and output, until it disconnects or a signal arrives."""

from __future__ import annotations

import json
import signal
from typing import Any, cast

import anyio
from mcp import types
from mcp.server.stdio import stdio_server
from mcp.shared.message import SessionMessage
from pydantic import ValidationError

from rye.context import Context
from rye.mcp.process import StopSignals
from rye.mcp.server import Service
from rye.mcp.settings import ServerSettings
from rye.mcp.stdio_streams import LineReader, LineWriter, StdioDescriptors


async def serve_stdio(
    context: Context, settings: ServerSettings, descriptors: StdioDescriptors
) -> signal.Signals | None:
    """Return the signal that stopped the server, or ``None`` if the client disconnected.

    Running tools have ended before this returns. Raises ``ItemFormatError`` if the project's config
    is invalid.
    """
    service = Service(context, settings)
    scope = anyio.CancelScope()
    with StopSignals(scope.cancel) as signals, scope:
        await _serve(service, descriptors)
    return signals.received


async def _serve(service: Service, descriptors: StdioDescriptors) -> None:
    # The SDK expects anyio files, but uses only the methods that these two have.
    stdin = cast(Any, LineReader(descriptors.incoming))
    stdout = cast(Any, LineWriter(descriptors.outgoing))
    server = service.server
    try:
        async with stdio_server(stdin, stdout) as (incoming, outgoing):
            messages = cast(Any, _ParsedMessages(incoming, outgoing))
            await server.run(messages, outgoing, server.create_initialization_options())
    except* (BrokenPipeError, ConnectionResetError):
        # The client no longer reads: it has disconnected.
        pass


class _ParsedMessages:
    """The messages of a client, as a stream for the SDK.

    A request that cannot be parsed is answered with an error: without an answer its client would
    wait forever. One cause is an unpaired surrogate, which JSON can spell and Unicode text cannot
    contain.
    """

    def __init__(self, incoming: Any, outgoing: Any) -> None:
        self._incoming = incoming
        self._outgoing = outgoing

    @property
    def last_context(self) -> Any:
        """The context that the SDK reads after each message."""
        return self._incoming.last_context

    def __aiter__(self) -> _ParsedMessages:
        return self

    async def __anext__(self) -> SessionMessage:
        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def receive(self) -> SessionMessage:
        """Return the next message. Raises ``EndOfStream`` when the client has disconnected."""
        while True:
            item: SessionMessage | Exception = await self._incoming.receive()
            if isinstance(item, SessionMessage):
                return item
            request_id = _request_id(item)
            if request_id is not None:
                await self._outgoing.send(_parse_error(request_id))

    async def aclose(self) -> None:
        """Stop reading."""
        await self._incoming.aclose()


def _parse_error(request_id: int | str) -> SessionMessage:
    error = types.ErrorData(
        code=types.INVALID_REQUEST,
        message="the request cannot be parsed; send JSON-RPC 2.0 in valid Unicode, "
        "nested less deeply",
    )
    return SessionMessage(types.JSONRPCError(jsonrpc="2.0", id=request_id, error=error))


def _request_id(fault: Exception) -> int | str | None:
    """Return the id of the request that could not be parsed; ``None`` if it expects no answer."""
    if not isinstance(fault, ValidationError):
        return None
    for found in fault.errors(include_url=False, include_context=False):
        message = found["input"]
        if isinstance(message, str):
            message = _decoded(message)
        if isinstance(message, dict) and "method" in message:
            request_id = message.get("id")
            if isinstance(request_id, str):
                return request_id if request_id.isascii() else None
            return request_id if type(request_id) is int else None
    return None


def _decoded(line: str) -> Any:
    try:
        return json.loads(line)
    except (ValueError, RecursionError):
        return None
