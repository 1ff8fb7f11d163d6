"""`rye mcp` over stdio against a bare server of the official SDK, which has one static tool.

1. The time from the start of the process to the answer of the first ``tools/list``, alternating;
   ratio of the medians.
2. The memory (RSS) of the server process after a call, when nothing is loaded any more. Memory of
   the processes that it starts is not included.
3. A call of ``/bin/true`` through ``execute`` over stdio, minus the same call by an executor in
   this process, alternating with a trivial call of the bare server; ratio of the medians.

The last is measured twice: for a client that gets log messages, and for one that has set its
level so that it gets none.

Usage: python bench/rye_mcp.py [starts] [calls]
"""

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "testing"))

from rye.executor.run.execute import PrimitiveExecutor
from rye_project import Project
from table import Row, finish

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


class Session:
    """A minimal client."""

    def __init__(
        self, argv: list[str], environ: dict[str, str], call: str = "", **arguments: Any
    ) -> None:
        self._next = 0
        started = time.perf_counter()
        self._process = subprocess.Popen(
            argv, env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        client_info = {"name": "bench", "version": "1"}
        self.ask(
            "initialize", protocolVersion="2025-11-25", capabilities={}, clientInfo=client_info
        )
        self._send(method="notifications/initialized")
        assert self.ask("tools/list")["tools"]
        self.start_seconds = time.perf_counter() - started
        if call:
            self.call(call, **arguments)

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        self._next += 1
        self._send(id=self._next, method=method, params=params)
        assert self._process.stdout is not None
        while True:
            message = json.loads(self._process.stdout.readline())
            if message.get("id") == self._next:
                result: dict[str, Any] = message["result"]
                return result

    def call(self, name: str, **arguments: Any) -> None:
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


def alternating(rounds: int, *calls: Callable[[], object]) -> list[float]:
    """Return the median of each in ms; the first rounds are a warm-up."""
    samples: list[list[float]] = [[] for _ in calls]
    for turn in range(rounds + rounds // 5):
        for call, taken in zip(calls, samples, strict=True):
            started = time.perf_counter()
            call()
            if turn >= rounds // 5:
                taken.append((time.perf_counter() - started) * 1000)
    return [statistics.median(taken) for taken in samples]


def starts(times: int, ours: list[str], bare: list[str], environ: dict[str, str]) -> Row:
    """Measure the start; the first start of each only fills the caches."""
    samples: tuple[list[float], list[float]] = ([], [])
    for turn in range(times + 1):
        for argv, taken in zip((ours, bare), samples, strict=True):
            session = Session(argv, environ)
            session.close()
            if turn:
                taken.append(session.start_seconds * 1000)
    mine, theirs = map(statistics.median, samples)
    detail = f"{mine:.0f} / {theirs:.0f} ms, medians of {times}"
    return Row("start to first list ÷ bare server", mine / theirs, START_LIMIT, detail=detail)


def memory(ours: list[str], bare: list[str], environ: dict[str, str]) -> Row:
    """Measure the memory; a first session fills the caches on disk."""
    Session(ours, environ, "execute", item_id="bench/true").close()
    sessions = (
        Session(ours, environ, "execute", item_id="bench/true"),
        Session(bare, environ, "trivial"),
    )
    mine, theirs = (settled(session) for session in sessions)
    for session in sessions:
        session.close()
    detail = f"{mine / 1024:.0f} / {theirs / 1024:.0f} MiB"
    return Row("memory after a call ÷ bare server", mine / theirs, MEMORY_LIMIT, detail=detail)


def settled(session: Session) -> int:
    """Return the memory once it has not changed for a second."""
    before, since = session.memory(), time.monotonic()
    while time.monotonic() - since < 1:
        time.sleep(0.05)
        now = session.memory()
        if abs(now - before) > 100:
            before, since = now, time.monotonic()
    return before


def calls(
    times: int, ours: list[str], bare: list[str], environ: dict[str, str], project: Project
) -> list[Row]:
    loop = asyncio.new_event_loop()
    executor = PrimitiveExecutor(context=project.context)
    rye, other = Session(ours, environ), Session(bare, environ)

    def direct() -> None:
        result = loop.run_until_complete(executor.execute("bench/true", {}))
        assert result.success, result.error

    def measure(what: str) -> Row:
        ratios = []
        for _ in range(RUNS):
            mine, tool, theirs = alternating(
                times,
                lambda: rye.call("execute", item_id="bench/true"),
                direct,
                lambda: other.call("trivial"),
            )
            ratios.append((mine - tool) / theirs)
        detail = f"last {mine:.2f} - {tool:.2f} ms, bare {theirs:.2f} ms"
        return Row(what, statistics.median(ratios), CALL_LIMIT, detail=detail)

    try:
        with_logs = measure("overhead of a call ÷ trivial call, with logs")
        rye.ask("logging/setLevel", level="error")
        return [with_logs, measure("overhead of a call ÷ trivial call")]
    finally:
        rye.close()
        other.close()
        loop.run_until_complete(executor.aclose())
        loop.close()


def main() -> int:
    """Run all measurements. Returns 1 if a limit was exceeded."""
    count, rounds = (int(text) for text in (*sys.argv[1:], "9", "150")[:2])
    with tempfile.TemporaryDirectory() as folder:
        project = Project(Path(folder), shipped_system=True)
        project.command("bench/true", "/bin/true")
        script = Path(folder) / "bare.py"
        script.write_text(BARE)
        scripts = Path(sys.executable).parent
        environ = {**os.environ, "USER_SPACE": str(project.user)}
        # An installed program has compiled modules.
        environ.pop("PYTHONDONTWRITEBYTECODE", None)
        ours = [str(scripts / "rye"), "--project", str(project.path), "mcp"]
        bare = [sys.executable, str(script)]
        rows = [starts(count, ours, bare, environ), memory(ours, bare, environ)]
        return finish([*rows, *calls(rounds, ours, bare, environ, project)])


if __name__ == "__main__":
    sys.exit(main())
