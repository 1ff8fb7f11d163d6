"""Connections that stay open, are slow or come in masses do not stop the HTTP server."""

from __future__ import annotations

import asyncio
import collections
import contextlib
import http.client
import logging
import re
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import AsyncIterator, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import NamedTuple, Self

import psutil
import pytest
from mcp_session import HANDSHAKE, Served, command, environment, over_http, text_of
from processes import wait_until
from rye.mcp.http_connections import Limits
from rye.mcp.process import OncePerMinute
from rye_project import Project

TOKEN = "a-token-for-tests-0123456789"
AUTHORIZATION = f"Authorization: Bearer {TOKEN}\r\n"
TOO_MANY = "too many connections without a valid request: {}; the oldest are closed\n"
NO_DESCRIPTORS = (
    "rye mcp: connections cannot be accepted (too many open files); "
    "raise the limit for open files (ulimit -n) if this persists"
)
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}
HASTY = Limits(waiting=32, clients=32, head_seconds=1.5, body_seconds=1.5)

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="uses prlimit and /proc")


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


class Running(NamedTuple):
    """A real ``rye mcp --http``."""

    process: subprocess.Popen[bytes]
    port: int
    errors: Path

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=10)

    def status(self) -> int:
        """Return the status of a request with the token; it is 404 if the server works."""
        client = http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
        with contextlib.closing(client):
            client.request("GET", "/nothing", headers={"Authorization": f"Bearer {TOKEN}"})
            return client.getresponse().status

    def status_in_the_end(self) -> int:
        """Return the status for a client that tries again after a 503, as that status asks.

        A client that is slow to send its request can be the oldest of the waiting connections.
        """
        for _ in range(10):
            if (status := self.status()) != HTTPStatus.SERVICE_UNAVAILABLE:
                break
        return status

    def logged(self) -> str:
        """Return stderr without the line that names the address."""
        return self.errors.read_text().partition("\n")[2]


@contextlib.contextmanager
def served(project: Project, tmp_path: Path, *, descriptors: int) -> Iterator[Running]:
    errors = tmp_path / "stderr"
    limited = ["sh", "-c", f'ulimit -n {descriptors}; exec "$@"', "sh"]
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [*limited, *command(project, "--http", "127.0.0.1:0")],
            env=environment(project, RYE_MCP_TOKEN=TOKEN),
            stdin=subprocess.DEVNULL,
            stderr=stderr,
        ) as process,
    ):
        try:
            wait_until(lambda: "/mcp\n" in errors.read_text(), "the server is ready")
            port = int(errors.read_text().rpartition(":")[2].partition("/")[0])
            yield Running(process, port, errors)
        finally:
            process.kill()


def test_half_open_connections_without_a_token_do_not_stop_the_server(
    project: Project, tmp_path: Path
) -> None:
    with (
        served(project, tmp_path, descriptors=256) as server,
        contextlib.ExitStack() as attacker,
    ):
        for _ in range(300):
            attacker.enter_context(server.connect()).send(b"POST /mcp HTTP/1.1\r\nHost: x")
        assert [server.status() for _ in range(5)] == [404] * 5
        assert server.logged() == "rye mcp: " + TOO_MANY.format(32)


def test_a_flood_that_never_pauses_does_not_shut_out_a_client(
    project: Project, tmp_path: Path
) -> None:
    openings = [
        b"",
        b"POST /mcp HT",
        b"no request\r\n\r\n",
        b"GET /mcp HTTP/1.1\r\nHost: x\r\n\r\n",
    ]
    stopped = threading.Event()
    opened: list[int] = []

    def flood(server: Running, opening: bytes) -> None:
        held: collections.deque[socket.socket] = collections.deque()
        while not stopped.is_set():
            with contextlib.suppress(OSError):
                held.append(server.connect())
                held[-1].send(opening)
                opened.append(1)
            if len(held) > 100:
                held.popleft().close()
        for one in held:
            one.close()

    with served(project, tmp_path, descriptors=256) as server:
        floods = [threading.Thread(target=flood, args=(server, one)) for one in openings]
        for one in floods:
            one.start()
        try:
            wait_until(lambda: len(opened) > 300, "the flood has begun")
            assert [server.status_in_the_end() for _ in range(20)] == [404] * 20
        finally:
            stopped.set()
            for one in floods:
                one.join()
        # A condition that lasts is logged again after a minute, with a number.
        logged = re.sub(r" \(and \d+ more like it\)", "", server.logged())
        assert set(logged.splitlines(keepends=True)) == {
            "rye mcp: Invalid HTTP request received.\n",
            "rye mcp: " + TOO_MANY.format(32),
        }


def test_a_server_without_free_descriptors_pauses_and_recovers(
    project: Project, tmp_path: Path
) -> None:
    with served(project, tmp_path, descriptors=256) as server:
        assert server.status() == 404
        process = psutil.Process(server.process.pid)
        wait_until(lambda: not process.net_connections(kind="tcp")[1:], "no client is connected")
        # The lowest free number is beyond the limit, so that accept() fails.
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (3, 256))
        with server.connect():
            wait_until(lambda: server.logged() != "", "the server has noticed")
            before = sum(process.cpu_times()[:2])
            time.sleep(1)
            assert sum(process.cpu_times()[:2]) - before < 0.8
            logged = server.logged().splitlines()
            assert [line for line in logged if "watch for changes" not in line] == [NO_DESCRIPTORS]
        resource.prlimit(process.pid, resource.RLIMIT_NOFILE, (256, 256))
        assert server.status() == 404


class Raw:
    """A connection on which a test decides about every byte."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    @classmethod
    @contextlib.asynccontextmanager
    async def to(cls, server: Served) -> AsyncIterator[Self]:
        port = int(server.url.rpartition(":")[2].partition("/")[0])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        try:
            yield cls(reader, writer)
        finally:
            writer.close()
            with contextlib.suppress(OSError):
                await writer.wait_closed()

    async def send(self, text: str) -> None:
        self._writer.write(text.encode())
        await self._writer.drain()

    async def line(self) -> str:
        return (await asyncio.wait_for(self._reader.readline(), 10)).decode().strip()

    async def received(self) -> str:
        """Return everything until the server closes the connection."""
        received = b""
        async with asyncio.timeout(10):
            with contextlib.suppress(ConnectionError):
                while chunk := await self._reader.read(4096):
                    received += chunk
        return received.decode()

    async def drip(self) -> None:
        """Send a header that never ends, a byte at a time, until the server closes."""
        with contextlib.suppress(OSError):
            while True:
                await self.send("x")
                await asyncio.sleep(0.02)


def head(server: Served, *more: str) -> str:
    host = server.url.removeprefix("http://").partition("/")[0]
    return f"POST /mcp HTTP/1.1\r\nHost: {host}\r\n{''.join(more)}"


def test_headers_sent_byte_by_byte_are_cut_off(project: Project) -> None:
    async def run() -> str:
        async with over_http(project, token=TOKEN, limits=HASTY) as server, Raw.to(server) as slow:
            await slow.send(head(server, AUTHORIZATION, "X-Slow: "))
            dripping = asyncio.create_task(slow.drip())
            received = await slow.received()
            dripping.cancel()
            return received

    received = asyncio.run(run())
    assert received.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert received.endswith('{"error": "no complete request arrived within 1.5 seconds"}')


def test_a_body_that_never_ends_is_cut_off(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> tuple[str, list[str]]:
        async with over_http(project, token=TOKEN, limits=HASTY) as server, Raw.to(server) as slow:
            await slow.send(head(server, AUTHORIZATION, "Content-Length: 100\r\n\r\n{"))
            return await slow.received(), [one.getMessage() for one in caplog.records]

    received, logged = asyncio.run(run())
    assert received.startswith("HTTP/1.1 408 Request Timeout\r\n")
    assert logged == []


def test_refused_requests_do_not_keep_a_connection_open(project: Project) -> None:
    async def run() -> str:
        async with over_http(project, token=TOKEN, limits=HASTY) as server, Raw.to(server) as guest:

            async def ask() -> None:
                with contextlib.suppress(OSError):
                    while True:
                        await guest.send(head(server, "Content-Length: 0\r\n\r\n"))
                        await asyncio.sleep(0.05)

            asking = asyncio.create_task(ask())
            received = await guest.received()
            asking.cancel()
            return received

    assert asyncio.run(run()).startswith("HTTP/1.1 401 Unauthorized\r\n")


def test_streams_and_calls_of_clients_outlast_the_time_limits(project: Project) -> None:
    project.command("slow", "/bin/sh", "-c", "sleep 3; echo done")

    async def run() -> str:
        async with (
            over_http(project, token=TOKEN, limits=HASTY) as server,
            server.http() as http_client,
            server.client(HANDSHAKE) as client,
            Raw.to(server) as listening,
        ):
            accept = {"Accept": "application/json, text/event-stream"}
            opened = await http_client.post(server.url, json=INITIALIZE, headers=accept)
            session = f"mcp-session-id: {opened.headers['mcp-session-id']}\r\n"
            stream = head(server, AUTHORIZATION, session).replace("POST", "GET")
            await listening.send(f"{stream}Accept: text/event-stream\r\n\r\n")
            assert await listening.line() == "HTTP/1.1 200 OK"
            result = await client.call_tool("execute", {"item_id": "slow"})
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(listening.received(), 0.2)
            return text_of(result)

    assert asyncio.run(run()) == "done\n"


def test_clients_beyond_the_limit_are_refused_and_the_server_says_so_once(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    limits = Limits(waiting=32, clients=2, body_seconds=30)

    async def run() -> list[int]:
        async with over_http(project, token=TOKEN, limits=limits) as server:
            async with Raw.to(server) as first, Raw.to(server) as second:
                for one in (first, second):
                    await one.send(head(server, AUTHORIZATION, "Content-Length: 100\r\n\r\n{"))
                await asyncio.sleep(0.2)
                async with server.http() as http_client:
                    refused = await http_client.get(server.url.replace("/mcp", "/nothing"))
            await asyncio.sleep(0.2)
            # Idle connections make room.
            statuses = [refused.status_code]
            async with contextlib.AsyncExitStack() as stack:
                for _ in range(4):
                    http_client = await stack.enter_async_context(server.http())
                    answer = await http_client.get(server.url.replace("/mcp", "/nothing"))
                    statuses.append(answer.status_code)
            return statuses

    assert asyncio.run(run()) == [503, 404, 404, 404, 404]
    assert [one.getMessage() for one in caplog.records] == [
        "too many connections of clients: 2; more requests are refused with status 503"
    ]


def test_connections_use_at_most_half_of_the_descriptors() -> None:
    assert Limits.for_descriptors(256)[:2] == (32, 96)
    assert Limits.for_descriptors(1024)[:2] == (128, 384)
    assert Limits.for_descriptors(1 << 20)[:2] == (128, 1024)


def test_a_condition_is_logged_once_a_minute_with_the_number_of_times() -> None:
    now = 0.0
    once = OncePerMinute(clock=lambda: now)

    def logged(name: str, line: int, message: str) -> str | None:
        record = logging.LogRecord(name, logging.WARNING, "x.py", line, message, None, None)
        return record.getMessage() if once.filter(record) else None

    assert logged("uvicorn.error", 1, "from 1.2.3.4") == "from 1.2.3.4"
    assert logged("uvicorn.error", 1, "from 5.6.7.8") is None
    assert logged("rye.mcp", 2, "too many") == "too many"
    assert logged("rye.mcp", 2, "another") == "another"
    assert logged("rye.mcp", 2, "too many") is None
    now = 61.0
    assert logged("rye.mcp", 2, "too many") == "too many (and 1 more like it)"
    assert logged("rye.mcp", 2, "another") == "another"
