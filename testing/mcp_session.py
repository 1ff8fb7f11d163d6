"""The MCP server under test, with a client of the SDK connected to it.

::

    async with connected(project, era) as client:      # in this process, over lines in memory
    async with wired(project) as client:               # in this process, over pipes, by lines
    async with over_stdio(project, era) as client:     # a real ``rye mcp``
    async with over_http(project) as server:           # in this process, over a real socket
        async with server.client(era) as client: ...
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import httpx2
from mcp import Client, MCPError, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.shared.message import SessionMessage
from mcp.types import CallToolResult, ErrorData, TextContent, jsonrpc_message_adapter
from rye.mcp.http import Access, serve_http
from rye.mcp.http_connections import Limits
from rye.mcp.http_options import ONLY_TOKEN, Address, open_listener
from rye.mcp.line_session import LineSession
from rye.mcp.server import Service
from rye.mcp.settings import ServerSettings
from rye.mcp.stdio import serve_stdio
from rye.mcp.stdio_streams import LineReader, LineWriter, StdioDescriptors
from rye_project import Project

HANDSHAKE, STATELESS = "legacy", "2026-07-28"
ERAS = [HANDSHAKE, STATELESS]
"""How clients of the 2025 revisions and of 2026-07-28 open a connection."""


def text_of(result: CallToolResult) -> str:
    """Return the only text of a result."""
    (content,) = result.content
    assert isinstance(content, TextContent)
    return content.text


def command(project: Project, *arguments: str) -> list[str]:
    """Return the command line of ``rye mcp`` for this project, approved as it is now."""
    path = str(project.context.project_path)
    return [sys.executable, "-m", "rye", "--project", path, "mcp", *arguments]


def environment(project: Project, **more: str) -> dict[str, str]:
    """Return the environment in which the server is started."""
    scripts = str(Path(sys.executable).parent)
    path = os.pathsep.join([scripts, project.environ["PATH"]])
    return {**project.environ, "PATH": path, "USER_SPACE": str(project.user), **more}


@contextlib.asynccontextmanager
async def connected(
    project: Project, era: str = HANDSHAKE, settings: ServerSettings | None = None, **options: Any
) -> AsyncIterator[Client]:
    """A client connected to a server in this process; the server stops with the block."""
    service = Service(project.context, settings or ServerSettings())
    async with Client(served_over_lines(service), mode=era, **options) as client:
        yield client


@contextlib.asynccontextmanager
async def served_over_lines(service: Service) -> AsyncIterator[Any]:
    """The transport of a client of the SDK to a server in this process."""
    async with create_client_server_memory_streams() as (client_streams, server_streams):
        incoming, outgoing = server_streams
        session = LineSession(service, _lines(incoming), _Messages(outgoing))
        serving = asyncio.create_task(session.serve())
        try:
            yield client_streams
        finally:
            serving.cancel()
            await asyncio.wait([serving])


async def _lines(incoming: Any) -> AsyncIterator[bytes]:
    async for item in incoming:
        yield item.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n"


class _Messages:
    """The client's end of the lines that the server writes."""

    def __init__(self, outgoing: Any) -> None:
        self._outgoing = outgoing

    async def write(self, line: bytes) -> None:
        if line:
            await self._outgoing.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))


async def refused(request: Awaitable[object]) -> ErrorData:
    """Return the protocol error with which a request was answered.

    Raised inside a connection, it would be wrapped in nested exception groups.
    """
    try:
        await request
    except MCPError as error:
        return error.error
    raise AssertionError("the request was not refused")


@contextlib.asynccontextmanager
async def over_stdio(
    project: Project, era: str, *arguments: str, **options: Any
) -> AsyncIterator[Client]:
    """A client connected to a real ``rye mcp`` process."""
    called, *rest = command(project, *arguments)
    parameters = StdioServerParameters(command=called, args=rest, env=environment(project))
    with Path(os.devnull).open("w") as errors:  # noqa: ASYNC230 - opening /dev/null does not block
        async with Client(stdio_client(parameters, errlog=errors), mode=era, **options) as client:
            yield client


class Served(NamedTuple):
    """An HTTP server in this process on a free port of 127.0.0.1."""

    url: str
    token: str | None
    serving: asyncio.Task[Any]

    @contextlib.asynccontextmanager
    async def client(self, era: str, **options: Any) -> AsyncIterator[Client]:
        """A client that sends the token, if there is one."""
        async with self.http() as http:
            transport = streamable_http_client(self.url, http_client=http)
            async with Client(transport, mode=era, **options) as client:
                yield client

    def http(self) -> httpx2.AsyncClient:
        """Return an HTTP client for requests that an MCP client would not send."""
        headers = {} if self.token is None else {"Authorization": f"Bearer {self.token}"}
        return httpx2.AsyncClient(headers=headers, timeout=30)


@contextlib.asynccontextmanager
async def over_http(
    project: Project,
    settings: ServerSettings | None = None,
    *,
    token: str | None = None,
    named_tokens: Mapping[str, str] | None = None,
    origins: tuple[str, ...] = (),
    limits: Limits | None = None,
    grace_seconds: float = 0,
) -> AsyncIterator[Served]:
    """Serve over HTTP in this process; SIGTERM stops the server at the end of the block.

    Unlike in ``rye mcp``, running calls get no time after the signal.
    """
    ready = asyncio.Event()
    listener = open_listener(Address("127.0.0.1", 0))
    serving = asyncio.create_task(
        serve_http(
            project.context,
            settings or ServerSettings(),
            listener,
            Access(
                {**({} if token is None else {ONLY_TOKEN: token}), **(named_tokens or {})}, origins
            ),
            ready.set,
            limits=limits,
            grace_seconds=grace_seconds,
        )
    )
    await asyncio.wait_for(ready.wait(), 15)
    try:
        yield Served(listener.url, token, serving)
    finally:
        if not serving.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(serving, 15)


class Wired:
    """The client side of a server in this process that is connected with real pipes."""

    def __init__(self, to_server: int, from_server: int, serving: asyncio.Task[Any]) -> None:
        self.serving = serving
        self.from_server = from_server
        self.received: list[bytes] = []
        """All lines that the server has sent."""
        self._to_server: int | None = to_server
        self._writer = LineWriter(to_server)
        self._reader = LineReader(from_server)

    async def send(self, **message: Any) -> None:
        """Send a protocol message."""
        await self.send_line(json.dumps({"jsonrpc": "2.0", **message}))

    async def send_line(self, line: str) -> None:
        """Send any line."""
        await self._writer.write(line.encode() + b"\n")

    async def answer_to(self, number: int | str) -> dict[str, Any]:
        """Return the answer to a request; every line before it must be a valid message."""
        return await self._until(lambda message: message.get("id") == number)

    async def notification(self, method: str) -> dict[str, Any]:
        """Return the next notification of this method."""
        return await self._until(lambda message: message.get("method") == method)

    async def ask(self, number: int, method: str, **params: Any) -> dict[str, Any]:
        """Send a request and return its answer."""
        await self.send(id=number, method=method, params=params)
        return await self.answer_to(number)

    async def _until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        async for line in self._reader:
            self.received.append(line)
            message: dict[str, Any] = json.loads(line)
            assert message["jsonrpc"] == "2.0"
            if wanted(message):
                return message
        raise AssertionError("the server has disconnected")

    async def initialize(self) -> None:
        """Do the handshake of the 2025 revisions."""
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "test", "version": "1"},
        }
        assert (await self.ask(0, "initialize", **params))["result"]["serverInfo"]["name"] == "rye"
        await self.send(method="notifications/initialized")

    def disconnect(self) -> None:
        """Close the pipe to the server."""
        if self._to_server is not None:
            os.close(self._to_server)
            self._to_server = None


@contextlib.asynccontextmanager
async def wired(project: Project, settings: ServerSettings | None = None) -> AsyncIterator[Wired]:
    """Serve in this process over pipes, as a client would start the server."""
    server_in, to_server = os.pipe()
    from_server, server_out = os.pipe()
    serving = asyncio.create_task(
        serve_stdio(
            project.context, settings or ServerSettings(), StdioDescriptors(server_in, server_out)
        )
    )
    client = Wired(to_server, from_server, serving)
    try:
        yield client
    finally:
        client.disconnect()
        try:
            await asyncio.wait_for(serving, 15)
        finally:
            for fd in (server_in, from_server, server_out):
                os.close(fd)
