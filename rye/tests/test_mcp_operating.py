"""Operating the server: health, limits on calls, named tokens, the log of calls, stopping."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import stat
from pathlib import Path
from typing import Any

import httpx2
import pytest
from histories import records
from mcp.types import CallToolResult, ElicitResult
from mcp_session import HANDSHAKE, connected, over_http, text_of
from processes import wait_until
from rye.errors import ParameterError
from rye.mcp.call_log import CallLog
from rye.mcp.http import Access, serve_http
from rye.mcp.http_options import Address, open_listener
from rye.mcp.settings import ServerSettings
from rye_project import Project

SECONDS = 30
FIELDS = ["time", "client", "token", "item", "run_id", "duration_ms", "outcome", "bytes_out"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def held(project: Project, tmp_path: Path) -> None:
    """Add a tool that ends when the file ``go`` exists."""
    script = f"touch {tmp_path}/up; while [ ! -e {tmp_path}/go ]; do sleep 0.02; done; echo done"
    project.command("held", "/bin/sh", "-c", script)


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_health_needs_no_token_and_says_nothing_else(project: Project) -> None:
    async def run() -> list[tuple[int, str]]:
        async with over_http(project, token="0123456789abcdef") as server:
            address = server.url.removesuffix("/mcp")
            async with httpx2.AsyncClient(timeout=SECONDS) as http:
                answers = [
                    await http.get(f"{address}/healthz", headers={"Host": "probe"}),
                    await http.post(f"{address}/healthz"),
                    await http.get(server.url),
                ]
        return [(one.status_code, one.text) for one in answers]

    healthy, posted, other = asyncio.run(run())
    assert healthy == (200, '{"status": "ok"}')
    assert posted == (405, '{"error": "use GET"}')
    assert other[0] == 401


def test_calls_beyond_the_limit_wait_and_further_ones_are_refused(
    project: Project, tmp_path: Path
) -> None:
    held(project, tmp_path)
    settings = ServerSettings(max_calls=1, log=str(tmp_path / "log"))

    async def run() -> list[CallToolResult]:
        async with connected(project, HANDSHAKE, settings) as client, asyncio.timeout(SECONDS):
            call = {"item_id": "held"}
            waiting = [asyncio.create_task(client.call_tool("execute", call)) for _ in range(2)]
            await asyncio.to_thread(wait_until, (tmp_path / "up").exists, "the first call")
            refused = await client.call_tool("execute", call)
            (tmp_path / "go").touch()
            return [refused, *await asyncio.gather(*waiting)]

    refused, *served = asyncio.run(run())
    assert refused.is_error
    assert text_of(refused) == (
        "the server is busy: at most 1 call runs at once, and as many wait; call again later"
    )
    assert [text_of(one).strip() for one in served] == ["done", "done"]
    logged = [(line["item"], line["outcome"]) for line in lines_of(tmp_path / "log")]
    # Nobody has looked whether there is such an item.
    assert logged == [(None, "busy"), ("held", "ok"), ("held", "ok")]


def test_a_call_that_waits_for_the_user_does_not_keep_others_from_running(
    project: Project, tmp_path: Path
) -> None:
    project.command("quick", "/bin/echo", "quick")
    project.command("asked", "/bin/echo", "asked")
    settings = ServerSettings(max_calls=1, ask=("asked",))

    async def run() -> list[str]:
        asked, answer = asyncio.Event(), asyncio.Event()

        async def user(_context: object, _params: object) -> ElicitResult:
            asked.set()
            await answer.wait()
            return ElicitResult(action="accept", content={})

        async with connected(project, HANDSHAKE, settings, elicitation_callback=user) as client:
            async with asyncio.timeout(SECONDS):
                first = asyncio.create_task(client.call_tool("execute", {"item_id": "asked"}))
                await asked.wait()
                second = await client.call_tool("execute", {"item_id": "quick"})
                answer.set()
                return [text_of(second).strip(), text_of(await first).strip()]

    assert asyncio.run(run()) == ["quick", "asked"]


def test_the_log_has_a_line_for_each_call_and_no_values(project: Project, tmp_path: Path) -> None:
    schema = {"properties": {"text": {"type": "string"}}}
    project.command("notes/say", "/bin/echo", "{text}", config_schema=schema)
    project.command("fails", "/bin/sh", "-c", "exit 3")
    log = tmp_path / "log"
    calls: list[tuple[str, dict[str, Any]]] = [
        ("execute", {"item_id": "say", "parameters": {"text": "hunter2"}}),
        ("execute", {"item_id": "fails"}),
        ("execute", {"item_id": "hunter2"}),
        ("execute", {"item_id": "notes/say", "parameters": {"text": 7}}),
        ("search", {"query": "hunter2"}),
    ]

    async def run() -> None:
        settings = ServerSettings(log=str(log))
        async with connected(project, HANDSHAKE, settings) as client:
            for name, arguments in calls:
                await client.call_tool(name, arguments)
                if name == "search":
                    continue
                # As a log rotation does.
                log.rename(tmp_path / f"log.{len(list(tmp_path.glob('log.*')))}")

    asyncio.run(run())
    files = [*sorted(tmp_path.glob("log.*")), log]
    lines = [line for file in files for line in lines_of(file)]
    assert "hunter2" not in "".join(file.read_text() for file in files)
    assert [(line["item"], line["outcome"]) for line in lines] == [
        ("notes/say", "ok"),
        ("fails", "failed"),
        (None, "refused"),
        ("notes/say", "refused"),
        ("search", "ok"),
    ]
    assert [list(line) for line in lines] == [FIELDS] * len(calls)
    assert lines[0]["client"].startswith("mcp ")
    assert lines[0]["run_id"]
    assert lines[0]["bytes_out"] > len("hunter2")
    assert stat.S_IMODE(log.stat().st_mode) == 0o600


@pytest.mark.parametrize("recorded", [True, False])
def test_the_line_of_a_cancelled_call_names_its_tool_and_its_record(
    project: Project, tmp_path: Path, *, recorded: bool
) -> None:
    project.settings(history={"enabled": recorded})
    held(project, tmp_path)
    log = tmp_path / "log"

    async def run() -> None:
        settings = ServerSettings(log=str(log))
        async with connected(project, HANDSHAKE, settings) as client, asyncio.timeout(SECONDS):
            call = asyncio.create_task(client.call_tool("execute", {"item_id": "held"}))
            await asyncio.to_thread(wait_until, (tmp_path / "up").exists, "the call")
            call.cancel()
            await asyncio.wait([call])
            await asyncio.to_thread(wait_until, lambda: log.stat().st_size > 0, "its line")

    asyncio.run(run())
    (line,) = lines_of(log)
    assert (line["item"], line["outcome"]) == ("held", "cancelled")
    expected = [record["id"] for record in records(project)] if recorded else [None]
    assert [line["run_id"]] == expected


def test_a_log_that_cannot_be_written_is_refused_at_the_start(tmp_path: Path) -> None:
    path = tmp_path / "missing" / "log"
    with pytest.raises(ParameterError) as caught:
        CallLog(path)
    assert str(caught.value) == (
        f"invalid --log: {path}: no such file or directory; pass a file that you can write"
    )


def test_the_log_names_the_token_of_the_caller(project: Project, tmp_path: Path) -> None:
    project.command("quick", "/bin/echo", "quick")
    tokens = {"ada": "a" * 16, "ci": "c" * 16}
    settings = ServerSettings(log=str(tmp_path / "log"))
    initialize = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "curl", "version": "8"},
        },
    }
    call = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "execute", "arguments": {"item_id": "quick"}},
    }

    async def run() -> list[int]:
        ready = asyncio.Event()
        listener = open_listener(Address("127.0.0.1", 0))
        serving = asyncio.create_task(
            serve_http(project.context, settings, listener, Access(tokens), ready.set)
        )
        await asyncio.wait_for(ready.wait(), SECONDS)
        statuses = []
        accepted = {"Accept": "application/json, text/event-stream"}
        async with httpx2.AsyncClient(timeout=SECONDS) as http:
            for token in [*tokens.values(), "x" * 16]:
                headers = {**accepted, "Authorization": f"Bearer {token}"}
                opened = await http.post(listener.url, json=initialize, headers=headers)
                session = opened.headers.get("mcp-session-id")
                if session is not None:
                    headers["mcp-session-id"] = session
                    opened = await http.post(listener.url, json=call, headers=headers)
                statuses.append(opened.status_code)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.wait_for(serving, SECONDS)
        return statuses

    assert asyncio.run(run()) == [200, 200, 401]
    lines = lines_of(tmp_path / "log")
    assert [(one["token"], one["client"]) for one in lines] == [("ada", "curl 8"), ("ci", "curl 8")]


def test_a_running_call_may_end_after_sigterm_and_new_calls_are_refused(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    held(project, tmp_path)

    async def run() -> tuple[CallToolResult, CallToolResult, int]:
        async with over_http(project, grace_seconds=SECONDS) as server:
            health = server.url.replace("/mcp", "/healthz")
            async with (
                server.client(HANDSHAKE) as client,
                httpx2.AsyncClient(timeout=SECONDS) as http,
            ):
                # The client lists the tools after its first result, if it has not done so before.
                await client.list_tools()
                calling = asyncio.create_task(client.call_tool("execute", {"item_id": "held"}))
                await asyncio.to_thread(wait_until, (tmp_path / "up").exists, "the tool runs")
                os.kill(os.getpid(), signal.SIGTERM)
                while (status := (await http.get(health)).status_code) == 200:
                    await asyncio.sleep(0.01)
                refused = await client.call_tool("execute", {"item_id": "held"})
                (tmp_path / "go").touch()
                return await asyncio.wait_for(calling, SECONDS), refused, status

    result, refused, status = asyncio.run(run())
    assert text_of(refused) == "the server is stopping; call again when it runs again"
    assert text_of(result).strip() == "done"
    assert status == 503
    assert "Traceback" not in caplog.text
    assert not [one for one in caplog.records if one.exc_info]
