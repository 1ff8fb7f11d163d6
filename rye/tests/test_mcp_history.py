"""What the history says about the calls of agents."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from histories import records
from mcp.types import Implementation
from mcp_session import ERAS, connected, over_http
from rye.history.envelope import opened as open_envelope
from rye.history.receipts import log_lines
from rye.history.store import opened
from rye.history.verification import Keys, verify_log
from rye.mcp.callers import client_name
from rye.mcp.protocol import types
from rye.mcp.settings import ServerSettings
from rye_project import Project, says

TRACE = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
CLIENT = Implementation(name="inspector", version="1.2")
SCHEMA = {"type": "object", "properties": {"word": {"type": "string"}}}


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    says(project, "echo hi", description="Says hi.", config_schema=SCHEMA)
    return project


def in_a_loop(test: Callable[..., Coroutine[Any, Any, None]]) -> Callable[..., None]:
    """Run an async test in a new event loop."""

    @functools.wraps(test)
    def run(*args: Any, **options: Any) -> None:
        asyncio.run(test(*args, **options))

    return run


def meta(traceparent: object) -> Any:
    return {"traceparent": traceparent, "other": 1}


@pytest.mark.parametrize("era", ERAS)
@in_a_loop
async def test_a_call_over_lines_is_recorded_with_its_client_and_trace(
    project: Project, era: str
) -> None:
    async with connected(project, era, client_info=CLIENT) as client:
        await client.call_tool("execute", {"item_id": "tools/says"}, meta=meta(TRACE))
        await client.call_tool("execute", {"item_id": "tools/says"}, meta=meta(7))
    first, second = records(project)
    assert first["by"] == "mcp"
    assert first["client"] == "inspector 1.2"
    assert first["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert "token" not in first
    assert "shown" not in first
    assert "trace_id" not in second


@pytest.mark.parametrize("era", ERAS)
@in_a_loop
async def test_a_call_over_http_is_recorded_with_its_token(project: Project, era: str) -> None:
    async with (
        over_http(project, token="t0ken-of-the-server") as server,
        server.client(era, client_info=CLIENT) as client,
    ):
        await client.call_tool("execute", {"item_id": "tools/says"}, meta=meta(TRACE))
    (record,) = records(project)
    assert record["client"] == "inspector 1.2"
    assert record["token"] == "default"
    assert record["trace_id"] == "0af7651916cd43dd8448eb211c80319c"
    assert "t0ken" not in str(record)


@in_a_loop
async def test_what_the_agent_read_is_what_was_signed(project: Project) -> None:
    """Listed under its own name, or shown."""
    async with connected(project, settings=ServerSettings(all_tools=True)) as client:
        await client.call_tool("tools.says", {})
    async with connected(project) as client:
        await client.call_tool("show", {"item_id": "tools/says"})
        await client.call_tool("execute", {"item_id": "tools/says"})
    for record in records(project):
        assert record["shown"] == record["described"]


@in_a_loop
async def test_another_description_than_the_one_that_ran_is_noticed(project: Project) -> None:
    async with connected(project) as client:
        await client.call_tool("show", {"item_id": "tools/says"})
        project.lockfile("tools/says").unlink(missing_ok=True)
        says(project, "echo hi", description="Says something else.", config_schema=SCHEMA)
        await client.call_tool("execute", {"item_id": "tools/says"})
    (record,) = records(project)
    assert record["shown"] != record["described"]


@in_a_loop
async def test_a_server_signs_every_call(project: Project) -> None:
    async with connected(project, settings=ServerSettings(receipts=True)) as client:
        for _ in range(3):
            await client.call_tool("execute", {"item_id": "tools/says"})
        await client.call_tool("execute", {"item_id": "tools/missing"})
    made = [record["id"] for record in records(project)]
    with opened(project.context) as history:
        lines = list(log_lines(history))
    assert verify_log(lines, Keys(project.context), project.context).faults == ()
    assert sorted(open_envelope(line).predicate["run"] for line in lines) == made


def test_the_name_of_a_client_cannot_spoil_a_list() -> None:
    given = types.Implementation(name="a\nb\x1b[31m" + "c" * 500, version="1")
    name = client_name(given)
    assert name.startswith("a b[31mccc")
    assert len(name) <= 100
    assert client_name(None) == ""
