"""Serving one client on standard input and output, until it disconnects or a signal arrives."""

from __future__ import annotations

import asyncio
import signal

from rye.context import Context
from rye.mcp.line_session import LineSession
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
    session = LineSession(
        service, LineReader(descriptors.incoming), LineWriter(descriptors.outgoing)
    )
    serving = asyncio.create_task(session.serve())
    with StopSignals(serving.cancel) as signals:
        try:
            await serving
        except asyncio.CancelledError:
            if signals.received is None:
                raise
    return signals.received
