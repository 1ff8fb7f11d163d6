"""What the server loads, and that handlers can ask the client whichever transport it uses."""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.shared.memory import create_client_server_memory_streams
from mcp.types import ElicitRequestParams, ElicitResult
from mcp_session import command, environment, served_over_lines, text_of
from rye.mcp.protocol.connection import Method
from rye.mcp.protocol.errors import ProtocolError
from rye.mcp.protocol.types import CallToolParams, CallToolResult, TextContent
from rye.mcp.request import Request
from rye.mcp.sdk_server import sdk_server
from rye.mcp.server import Handler, Service
from rye.mcp.settings import ServerSettings
from rye_project import Project

HEAVY = ("mcp", "mcp_types", "pydantic", "starlette", "uvicorn", "httpx2", "opentelemetry")
SCHEMA = {"type": "object", "properties": {"name": {"type": "string"}}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_stdio_loads_neither_the_sdk_nor_its_libraries(project: Project, tmp_path: Path) -> None:
    project.command("say", "/bin/echo", "hi")
    (tmp_path / "sitecustomize.py").write_text(
        "import atexit, json, sys\n"
        "atexit.register(lambda: print(json.dumps(sorted(sys.modules)), file=sys.stderr))\n"
    )
    server = subprocess.Popen(
        command(project),
        env=environment(project, PYTHONPATH=str(tmp_path)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert server.stdin
    assert server.stdout
    client = {"name": "test", "version": "1"}
    version = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    call = {"name": "execute", "arguments": {"item_id": "say"}}
    for number, (method, params) in enumerate(
        [("initialize", version), ("tools/list", {}), ("tools/call", call)]
    ):
        message = {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
        server.stdin.write(json.dumps(message) + "\n")
        server.stdin.flush()
        answer = json.loads(server.stdout.readline())
        assert answer["id"] == number
        assert "result" in answer
    _, errors = server.communicate(timeout=60)
    loaded = json.loads(errors)
    assert "rye.mcp.line_session" in loaded
    assert [name for name in HEAVY if name in loaded] == []


async def ask(request: Request, _params: CallToolParams) -> CallToolResult:
    question = {"mode": "form", "message": "Who?", "requestedSchema": SCHEMA}
    assert request.capabilities.elicitation is not None
    try:
        answer = await request.ask("elicitation/create", question)
    except ProtocolError as error:
        answer = {"error": str(error)}
    return CallToolResult([TextContent(json.dumps(answer, sort_keys=True))], is_error=False)


@contextlib.asynccontextmanager
async def served_by_the_sdk(service: Service) -> AsyncIterator[Any]:
    server = sdk_server(service)
    async with (
        create_client_server_memory_streams() as (client_streams, server_streams),
        anyio.create_task_group() as group,
    ):
        group.start_soon(server.run, *server_streams, server.create_initialization_options())
        yield client_streams
        group.cancel_scope.cancel()


@pytest.mark.parametrize("serve", [served_over_lines, served_by_the_sdk])
@pytest.mark.parametrize(
    ("mode", "expected"),
    [
        ("legacy", {"action": "accept", "content": {"name": "Ada"}}),
        ("2026-07-28", {"error": "clients of 2026-07-28 cannot be sent requests"}),
    ],
)
def test_a_handler_can_ask_the_client(
    project: Project, serve: Any, mode: str, expected: dict[str, Any]
) -> None:
    service_of = project.context

    async def on_elicitation(_context: object, params: ElicitRequestParams) -> ElicitResult:
        assert params.message == "Who?"
        return ElicitResult(action="accept", content={"name": "Ada"})

    async def run() -> str:
        service = Service(service_of, ServerSettings())
        service.handlers["tools/call"] = Handler(Method(CallToolParams), ask)
        callbacks: dict[str, Any] = {"elicitation_callback": on_elicitation}
        async with Client(serve(service), mode=mode, **callbacks) as client:
            return text_of(await client.call_tool("ask", {}))

    assert json.loads(asyncio.run(run())) == expected
