"""`rye mcp` over stdio against servers of the official SDK and of FastMCP with one static tool.

1. The time from the start of the process to the answer of the first ``tools/list``, alternating;
   ratio of the medians.
2. The memory (RSS) of the server process after a call, when nothing is loaded any more. Memory of
   the processes that it starts is not included.
3. A call of ``/bin/true`` through ``execute`` over stdio, minus the same call by an executor in
   this process, alternating with a trivial call of the SDK's server; ratio of the medians.

The last is measured twice: for a client that gets log messages, and for one that has set its
level so that it gets none.
"""

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

from rye.executor.run.execute import PrimitiveExecutor
from rye_project import Project

from bench.peers import PeerMissingError, python_of, version_of
from bench.programs import RYE, installed_environ
from bench.table import Report, Row, Samples, alternating_medians

STARTS, CALLS = 9, 150
START_LIMIT = 0.25
MEMORY_LIMIT = 0.6
CALL_LIMIT = 1.5
RUNS = 5

BARE = """
import asyncio
from mcp import types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOL = types.Tool(name="trivial", description="Prints hi.", input_schema={"type": "object"})

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=[TOOL])

async def call_tool(ctx, params):
    return types.CallToolResult(content=[types.TextContent(type="text", text="hi")])

async def main():
    server = Server("bare", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (incoming, outgoing):
        await server.run(incoming, outgoing, server.create_initialization_options())

asyncio.run(main())
"""
FAST = """
from fastmcp import FastMCP

server = FastMCP("fast")

@server.tool
def trivial() -> str:
    return "hi"

server.run(show_banner=False)
"""
OURS, SDK, FASTMCP = "rye mcp", "server of the MCP SDK", "server of FastMCP"


class Session:
    """A minimal client."""

    def __init__(self, argv: list[str], environ: dict[str, str]) -> None:
        self._next = 0
        started = time.perf_counter()
        self._process = subprocess.Popen(
            argv,
            env=environ,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        client_info = {"name": "bench", "version": "1"}
        self.ask(
            "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client_info
        )
        self._send(method="notifications/initialized")
        assert self.ask("tools/list")["tools"]
        self.start_seconds = time.perf_counter() - started

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        self._send(id=self._next, method=method, params=params)
        assert self._process.stdout is not None
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._next:
                result: dict[str, Any] = message["result"]
                return result

    def call(self, name: str, arguments: dict[str, Any]) -> None:
        result = self.ask("tools/call", name=name, arguments=arguments)
        assert not result.get("isError"), result

    def memory(self) -> int:
        """Return the resident memory of the server in kB."""
        for line in Path(f"/proc/{self._process.pid}/status").read_text().splitlines():
            if line.startswith("VmRSS:"):
                return int(line.split()[1])
        raise AssertionError("the process has no memory")

    def close(self) -> None:
        self._process.communicate()

    def _send(self, **message: Any) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self._process.stdin.flush()


class Servers:
    """The commands of the servers, by name."""

    def __init__(self, commands: dict[str, list[str]], environ: dict[str, str]) -> None:
        self.commands = commands
        self._environ = environ

    def session(self, name: str) -> Session:
        return Session(self.commands[name], self._environ)

    def call_of(self, name: str) -> tuple[str, dict[str, Any]]:
        """Return a tool of the server that does nothing, and its arguments."""
        return ("execute", {"item_id": "bench/true"}) if name == OURS else ("trivial", {})


def starts(times: int, servers: Servers) -> dict[str, float]:
    """Return the median start of each in ms; the first start of each only fills the caches."""
    samples: dict[str, list[float]] = {name: [] for name in servers.commands}
    for turn in range(times + 1):
        for name in servers.commands:
            session = servers.session(name)
            session.close()
            if turn:
                samples[name].append(session.start_seconds * 1000)
    return {name: statistics.median(taken) for name, taken in samples.items()}


def memory(servers: Servers) -> dict[str, float]:
    """Return the memory of each after a call in MiB; a first session fills the caches on disk."""
    taken = {}
    for name in [*servers.commands, *servers.commands]:
        session = servers.session(name)
        session.call(*servers.call_of(name))
        taken[name] = settled(session) / 1024
        session.close()
    return taken


def settled(session: Session) -> int:
    """Return the memory once it has not changed for a second."""
    before, since = session.memory(), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.05)
        now = session.memory()
        if abs(now - before) > 100:
            before, since = now, time.monotonic()
    return before


def calls(times: int, servers: Servers, project: Project) -> list[Row]:
    loop = asyncio.new_event_loop()
    executor = PrimitiveExecutor(context=project.context)
    rye, other = servers.session(OURS), servers.session(SDK)

    def direct() -> None:
        result = loop.run_until_complete(executor.execute("bench/true", {}))
        assert result.success, result.error

    def overhead(what: str) -> Row:
        ratios = []
        for _ in range(RUNS):
            mine, tool, theirs = alternating_medians(
                times,
                lambda: rye.call(*servers.call_of(OURS)),
                direct,
                lambda: other.call(*servers.call_of(SDK)),
            )
            ratios.append((mine - tool) / theirs)
        detail = f"last {mine / 1000:.2f} - {tool / 1000:.2f} ms, bare {theirs / 1000:.2f} ms"
        return Row(what, statistics.median(ratios), CALL_LIMIT, detail=detail)

    try:
        with_logs = overhead("overhead of a call ÷ trivial call, with logs")
        rye.ask("logging/setLevel", level="error")
        return [with_logs, overhead("overhead of a call ÷ trivial call")]
    finally:
        rye.close()
        other.close()
        loop.run_until_complete(executor.aclose())
        loop.close()


def measure() -> Report:
    missing, peers = {}, {SDK: f"mcp {version('mcp')}"}
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        project.command("bench/true", "/bin/true")
        scripts = {name: Path(folder) / f"{name}.py" for name in ("sdk", "fast")}
        scripts["sdk"].write_text(BARE)
        scripts["fast"].write_text(FAST)
        commands = {
            OURS: [RYE, "--project", str(project.path), "mcp"],
            SDK: [sys.executable, str(scripts["sdk"])],
        }
        try:
            commands[FASTMCP] = [str(python_of("fastmcp")), str(scripts["fast"])]
            peers[FASTMCP] = f"fastmcp {version_of('fastmcp', 'fastmcp')}"
        except PeerMissingError as error:
            missing[FASTMCP] = str(error)
        servers = Servers(commands, installed_environ(project.user))
        start, used = starts(STARTS, servers), memory(servers)
        rows = [
            Row(
                "start to first list ÷ server of the SDK",
                start[OURS] / start[SDK],
                START_LIMIT,
                aim=0.15,
                detail=f"{start[OURS]:.0f} / {start[SDK]:.0f} ms, medians of {STARTS}",
            ),
            Row(
                "memory after a call ÷ server of the SDK",
                used[OURS] / used[SDK],
                MEMORY_LIMIT,
                aim=0.5,
                detail=f"{used[OURS]:.0f} / {used[SDK]:.0f} MiB",
            ),
            *calls(CALLS, servers, project),
        ]
    samples = {"start": Samples("ms", start), "memory": Samples("MiB", used)}
    return Report(rows, samples, missing, peers=peers)
