"""A project, and an MCP server outside of it whose tools it imports.

::

    world = World(tmp_path)
    world.offer("count", count="Counts calls")
    import_demo(cli, world)
    (result,) = world.call(("demo/count", {}))
"""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

from rye.executor.run.result import ExecutionResult
from rye_command import InProcessRye
from rye_project import Project

# What it offers is in a file, so that a test can change it while the server runs.
SERVER = r"""
import json, os, sys

def send(**message):
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

def text(value):
    return {"content": [{"type": "text", "text": value}]}

def offered():
    return json.load(open(sys.argv[1]))

print("a greeting that is not a message", flush=True)
print(f"started {os.getpid()}", file=sys.stderr, flush=True)
calls, waiting = 0, None
for line in sys.stdin:
    message = json.loads(line)
    method, params, number = message.get("method"), message.get("params", {}), message.get("id")
    if method == "initialize":
        send(id=number, result={"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
                                "serverInfo": {"name": "demo", "version": "1"}})
    elif method == "tools/list":
        send(id=number, result={"tools": offered()})
    elif method == "tools/call":
        calls += 1
        name, arguments = params["name"], params.get("arguments", {})
        if name == "count":
            send(id=number, result=text(f"{os.getpid()} {calls}"))
        elif name == "picture":
            send(id=number, result={"content": [
                {"type": "image", "data": "iVBORw0K", "mimeType": "image/png"}]})
        elif name == "wrapped":
            said = 'say "hi"'
            send(id=number, result={**text(said), "structuredContent": {"result": said}})
        elif name == "mixed":
            media = {"data": "iVBORw0K", "mimeType": "image/png"}
            send(id=number, result={"structuredContent": {"n": 1}, "content": [
                *text("one")["content"],
                {"type": "image", **media, "path": sys.argv[1]},
                {"type": "audio", **media},
                {"type": "resource", "resource": {"uri": "test://it", "text": "it"}},
                {"type": "resource_link", "uri": "test://it", "name": "it"}]})
        elif name == "large":
            media = {"type": "image", "data": "A" * 3000000, "mimeType": "image/png"}
            send(id=number, result={"content": [media, media]})
        elif name == "long":
            send(id=number, result={**text("x" * 100000), "structuredContent": {"n": 1}})
        elif name == "many":
            send(id=number, result={"content": text("x" * 900)["content"] * 500})
        elif name == "object":
            send(id=number, result={**text("short"), "structuredContent": {"n": "x" * 100000}})
        elif name == "wrong":
            send(id=number, result={**text("x" * 100000), "isError": True})
        elif name == "work":
            token = params["_meta"]["progressToken"]
            send(method="notifications/progress",
                 params={"progressToken": token, "progress": 1, "total": 2, "message": "half"})
            send(method="notifications/message", params={"level": "info", "data": "working"})
            send(id=number, result=text("worked"))
        elif name == "ask":
            waiting = number
            send(id=99, method="elicitation/create", params={
                "message": "Sure?", "requestedSchema": {
                    "type": "object", "properties": {"sure": {"type": "boolean"}}}})
        elif name == "read":
            try:
                send(id=number, result=text(open(arguments["path"]).read()))
            except OSError as error:
                send(id=number, result={**text(error.strerror), "isError": True})
        elif name == "change":
            send(method="notifications/tools/list_changed")
            send(id=number, result=text("changed"))
        elif name == "die":
            sys.exit(3)
        else:
            send(id=number, result=text(name))
    elif method == "notifications/cancelled":
        print("cancelled", file=sys.stderr, flush=True)
    elif number == 99:
        send(id=waiting, result=text(json.dumps(message.get("result"))))
    elif method is not None and number is not None:
        send(id=number, error={"code": -32601, "message": "no such method"})
"""
PLAIN = {"type": "object", "properties": {}}
READ = {
    "name": "read",
    "description": "Read a file",
    "inputSchema": {
        "type": "object",
        "properties": {"path": {"type": "string"}},
        "required": ["path"],
    },
    "annotations": {"readOnlyHint": True},
}


def _tools(*names: str, **descriptions: str) -> list[dict[str, Any]]:
    plain = [
        {"name": name, "description": descriptions.get(name, f"Does {name}"), "inputSchema": PLAIN}
        for name in names
    ]
    return [*plain, READ]


class World:
    """A project, and a server outside of it."""

    def __init__(self, folder: Path) -> None:
        self.project = Project(folder, shipped_system=True)
        self.script = folder / "server.py"
        self.script.write_text(SERVER)
        self.offered = folder / "offered.json"
        self.offer("count")

    @property
    def command(self) -> tuple[str, ...]:
        """The command of the server."""
        return (sys.executable, "-S", str(self.script), str(self.offered))

    def offer(self, *names: str, **descriptions: str) -> None:
        """Let the server offer these tools, and ``read``."""
        self.offered.write_text(json.dumps(_tools(*names, **descriptions)))

    def call(self, *calls: tuple[str, dict[str, Any]], **options: Any) -> list[ExecutionResult]:
        """Call tools of the project one after the other, with one executor."""

        async def body() -> list[ExecutionResult]:
            async with self.project.executor() as executor:
                return [await executor.execute(*one, **options) for one in calls]

        return asyncio.run(body())


def import_demo(cli: InProcessRye, world: World, *options: str) -> str:
    """Import the server as ``demo``, and return what was printed."""
    done = cli("import", "mcp", "demo", "--yes", *options, "--", *world.command)
    assert done.code == 0, done.stderr
    return done.stdout + done.stderr
