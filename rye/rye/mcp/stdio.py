"""Serving one client on standard input and output, until it leaves or a signal comes."""

from __future__ import annotations

import signal
from typing import Any, cast

import anyio
from mcp.server.stdio import stdio_server

from rye.context import Context
from rye.mcp.pipes import LineReader, LineWriter, Wire
from rye.mcp.server import Service
from rye.mcp.settings import ServerSettings
from rye.mcp.signals import Ending
from rye.mcp.unreadable import Answered


async def serve_stdio(
    context: Context, settings: ServerSettings, wire: Wire
) -> signal.Signals | None:
    """Gives the signal that ended it, or nothing if the client left.

    Either way, whatever runs is ended first. Raises ``ItemFormatError`` for the project's config.
    """
    service = Service(context, settings)
    scope = anyio.CancelScope()
    with Ending(scope.cancel) as ending, scope:
        await _serve(service, wire)
    return ending.by


async def _serve(service: Service, wire: Wire) -> None:
    # The SDK says files, and uses no more of them than these two have.
    stdin, stdout = cast(Any, LineReader(wire.incoming)), cast(Any, LineWriter(wire.outgoing))
    server = service.server
    try:
        async with stdio_server(stdin, stdout) as (incoming, outgoing):
            readable = cast(Any, Answered(incoming, outgoing))
            await server.run(readable, outgoing, server.create_initialization_options())
    except* (BrokenPipeError, ConnectionResetError):
        # The client does not read any more: it has left.
        pass
