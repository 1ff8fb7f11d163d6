"""Streamable HTTP: both protocol eras, access control, and how calls and the server end."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import httpx2
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.types import CallToolResult
from mcp_session import (
    ERAS,
    HANDSHAKE,
    STATELESS,
    Served,
    command,
    environment,
    over_http,
    text_of,
)
from processes import Tree, assert_ended, wait_until
from rye.mcp.settings import ServerSettings
from rye_project import Project

TOKEN = "a-token-for-tests-0123456789"
ACCEPT = {"Accept": "application/json, text/event-stream"}
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


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def shell(project: Project, item_id: str, script: str) -> None:
    project.command(item_id, "/bin/sh", "-c", script)


@pytest.mark.parametrize("era", ERAS)
def test_a_client_lists_calls_and_gets_progress(project: Project, tmp_path: Path, era: str) -> None:
    shell(
        project,
        "steps",
        f"echo one >&2; while [ ! -e {tmp_path}/go ]; do sleep 0.01; done; echo done",
    )
    reported: list[str | None] = []
    logged: list[Any] = []

    async def on_progress(progress: float, total: float | None, message: str | None) -> None:
        reported.append(message)
        (tmp_path / "go").touch()

    async def on_log(params: Any) -> None:
        logged.append(params.data)

    async def run() -> tuple[list[str], str]:
        async with (
            over_http(project, token=TOKEN) as server,
            server.client(era, logging_callback=on_log, log_level="info") as client,
            asyncio.timeout(30),
        ):
            names = [tool.name for tool in (await client.list_tools()).tools]
            result = await client.call_tool(
                "execute", {"item_id": "steps"}, progress_callback=on_progress
            )
            return names, text_of(result)

    assert asyncio.run(run()) == (["search", "show", "execute", "output"], "done\n\nstderr:\none\n")
    assert reported[0] == "one"
    assert logged == ["one"]


@pytest.mark.parametrize("era", ERAS)
def test_a_tool_that_appears_is_announced(project: Project, era: str) -> None:
    announced = asyncio.Event()

    async def on_message(message: Any) -> None:
        if getattr(message, "method", "") == "notifications/tools/list_changed":
            announced.set()

    async def change() -> None:
        async with asyncio.timeout(20):
            for attempt in range(1000):
                project.command(f"new{attempt}", "/bin/true")
                try:
                    async with asyncio.timeout(1):
                        await announced.wait()
                except TimeoutError:
                    continue
                return

    async def run() -> None:
        async with (
            over_http(project, ServerSettings(all_tools=True)) as server,
            server.client(era, message_handler=on_message) as client,
        ):
            await client.list_tools()
            if era == HANDSHAKE:
                assert client.server_capabilities.tools is not None
                assert client.server_capabilities.tools.list_changed is True
                await change()
                return
            async with client.listen(tools_list_changed=True) as subscription:

                async def pump() -> None:
                    async for _ in subscription:
                        announced.set()

                pumping = asyncio.create_task(pump())
                await change()
                pumping.cancel()

    asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_cancelling_a_call_ends_the_whole_tree(project: Project, tmp_path: Path, era: str) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> None:
        async with over_http(project) as server, server.client(era) as client:
            calling = asyncio.create_task(client.call_tool("execute", {"item_id": "tree"}))
            running = await asyncio.to_thread(tree.processes)
            calling.cancel()
            await asyncio.wait([calling])
            await asyncio.to_thread(assert_ended, running)
            assert (await client.list_tools()).tools

    asyncio.run(run())


@pytest.mark.parametrize("era", ERAS)
def test_a_client_that_disconnects_ends_the_whole_tree(
    project: Project, tmp_path: Path, era: str
) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> None:
        async with over_http(project) as server:
            calling = asyncio.create_task(_call_and_wait(server, era, "tree"))
            running = await asyncio.to_thread(tree.processes)
            # The connection is dropped without a cancel message.
            calling.cancel()
            await asyncio.wait([calling])
            await asyncio.to_thread(assert_ended, running)

    asyncio.run(run())


async def _call_and_wait(server: Served, era: str, item_id: str) -> None:
    call: dict[str, Any] = {
        "jsonrpc": "2.0",
        "id": 2,
        "method": "tools/call",
        "params": {"name": "execute", "arguments": {"item_id": item_id}},
    }
    async with server.http() as http:
        if era == HANDSHAKE:
            answer = await http.post(server.url, json=INITIALIZE, headers=ACCEPT)
            session = {"mcp-session-id": answer.headers["mcp-session-id"]}
            ready = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            await http.post(server.url, json=ready, headers={**ACCEPT, **session})
            headers = {**ACCEPT, **session, "mcp-protocol-version": "2025-11-25"}
        else:
            call["params"]["_meta"] = {
                "io.modelcontextprotocol/protocolVersion": STATELESS,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            }
            headers = {
                **ACCEPT,
                "mcp-protocol-version": STATELESS,
                "mcp-method": "tools/call",
                "mcp-name": "execute",
            }
        await http.post(server.url, json=call, headers=headers)
        raise AssertionError("the call returned")


def test_a_signal_ends_calls_streams_and_the_server(
    project: Project, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> tuple[object, dict[str, Any], CallToolResult]:
        async with over_http(project) as server, server.client(HANDSHAKE) as client:
            # A client of the 2025 revisions also keeps a stream open.
            calling = asyncio.create_task(client.call_tool("execute", {"item_id": "tree"}))
            running = await asyncio.to_thread(tree.processes)
            os.kill(os.getpid(), signal.SIGTERM)
            ended_by = await asyncio.wait_for(asyncio.shield(server.serving), 15)
            return ended_by, running, await asyncio.wait_for(calling, 15)

    ended_by, running, answer = asyncio.run(run())
    assert ended_by is signal.SIGTERM
    assert_ended(running)
    assert text_of(answer) == "the call was cancelled; call again if the result is still needed"
    # The server did not have to wait for the shutdown timeout.
    assert "timeout graceful shutdown exceeded" not in caplog.text


def test_a_call_that_takes_long_to_cancel_is_still_answered(
    project: Project, tmp_path: Path
) -> None:
    shell(project, "stubborn", f"trap '' TERM; touch {tmp_path}/up; while :; do sleep 0.1; done")

    async def run() -> CallToolResult:
        async with over_http(project) as server, server.client(HANDSHAKE) as client:
            calling = asyncio.create_task(client.call_tool("execute", {"item_id": "stubborn"}))
            await asyncio.to_thread(wait_until, (tmp_path / "up").exists, "the tool runs")
            os.kill(os.getpid(), signal.SIGTERM)
            return await asyncio.wait_for(calling, 15)

    assert text_of(asyncio.run(run())) == (
        "the call was cancelled; call again if the result is still needed"
    )


def statuses(project: Project, *requests: dict[str, str], **options: Any) -> list[int]:
    """Return the status of a handshake with each of these headers."""

    async def run() -> list[int]:
        async with over_http(project, **options) as server, httpx2.AsyncClient() as http:
            found = []
            for headers in requests:
                port = server.url.rpartition(":")[2].partition("/")[0]
                filled = {name: value.replace("PORT", port) for name, value in headers.items()}
                answer = await http.post(server.url, json=INITIALIZE, headers={**ACCEPT, **filled})
                found.append(answer.status_code)
            return found

    return asyncio.run(run())


def test_pages_of_other_origins_are_refused(project: Project) -> None:
    assert statuses(
        project,
        {},
        {"Origin": "http://127.0.0.1:PORT"},
        {"Origin": "http://localhost:PORT"},
        {"Origin": "http://localhost:1"},
        {"Origin": "https://evil.example"},
        {"Origin": "null"},
    ) == [200, 200, 200, 403, 403, 403]


def test_a_host_of_dns_rebinding_is_refused(project: Project) -> None:
    assert statuses(
        project,
        {"Host": "localhost:PORT"},
        {"Host": "evil.example:PORT"},
        {"Host": "127.0.0.1.evil.example:PORT"},
        {"Host": "localhost:1"},
    ) == [200, 421, 421, 421]


def test_an_origin_that_the_user_allows_is_accepted(project: Project) -> None:
    page = "https://page.example"

    async def run() -> tuple[httpx2.Response, httpx2.Response, httpx2.Response]:
        async with (
            over_http(project, token=TOKEN, origins=(page,)) as server,
            server.http() as http,
            httpx2.AsyncClient() as anonymous,
        ):
            preflight = {
                "Origin": page,
                "Access-Control-Request-Method": "POST",
                "Access-Control-Request-Headers": "authorization,content-type",
            }
            return (
                await anonymous.options(server.url, headers=preflight),
                await http.post(server.url, json=INITIALIZE, headers={**ACCEPT, "Origin": page}),
                await anonymous.post(
                    server.url, json=INITIALIZE, headers={**ACCEPT, "Origin": page}
                ),
            )

    preflight, accepted, without_token = asyncio.run(run())
    assert preflight.status_code == 200
    assert preflight.headers["access-control-allow-origin"] == page
    assert accepted.status_code == 200
    assert accepted.headers["access-control-expose-headers"] == "mcp-session-id"
    assert without_token.status_code == 401


def test_requests_without_the_token_are_refused(project: Project) -> None:
    assert statuses(
        project,
        {"Authorization": f"Bearer {TOKEN}"},
        {"Authorization": f"bearer {TOKEN}"},
        {},
        {"Authorization": TOKEN},
        {"Authorization": f"Basic {TOKEN}"},
        {"Authorization": f"Bearer {TOKEN[:-1]}"},
        {"Authorization": f"Bearer {TOKEN}x"},
        {"Authorization": "Bearer"},
        token=TOKEN,
    ) == [200, 200, 401, 401, 401, 401, 401, 401]


def test_other_paths_and_large_bodies_are_refused(project: Project) -> None:
    async def run() -> list[int]:
        async with over_http(project) as server, server.http() as http:
            large = await http.post(server.url, content=b"x" * (9 * 1024 * 1024), headers=ACCEPT)
            other = await http.get(server.url.replace("/mcp", "/"))
            return [large.status_code, other.status_code]

    assert asyncio.run(run()) == [413, 404]


def test_the_command_serves_hides_its_token_from_tools_and_stops_on_a_signal(
    project: Project,
) -> None:
    project.command("env", "/usr/bin/env")

    async def use(url: str) -> str:
        headers = {"Authorization": f"Bearer {TOKEN}"}
        async with httpx2.AsyncClient(headers=headers, timeout=30) as http:
            transport = streamable_http_client(url, http_client=http)
            async with Client(transport, mode=STATELESS) as client:
                return text_of(await client.call_tool("execute", {"item_id": "env"}))

    with subprocess.Popen(
        command(project, "--http", "127.0.0.1:0"),
        env=environment(project, RYE_MCP_TOKEN=TOKEN, OTHER="visible"),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stderr is not None
            line = server.stderr.readline()
            assert line.startswith("rye: serving MCP at http://127.0.0.1:"), line
            url = line.split()[-1]
            assert httpx2.post(url, json=INITIALIZE, headers=ACCEPT).status_code == 401
            seen = asyncio.run(use(url))
            assert "OTHER=visible" in seen
            assert TOKEN not in seen
            server.terminate()
            printed, logged = server.communicate(timeout=30)
            assert printed == ""
            assert [one for one in logged.splitlines() if "is not confined" not in one] == []
            assert server.returncode == 143
        finally:
            server.kill()


def test_without_a_token_the_user_is_warned_about_other_users(project: Project) -> None:
    with subprocess.Popen(
        command(project, "--http", "127.0.0.1:0"),
        env=environment(project),
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        try:
            assert server.stderr is not None
            assert server.stderr.readline().startswith("rye: serving MCP at http://127.0.0.1:")
            assert server.stderr.readline() == (
                "rye: every user and program on this machine can run your tools there; "
                "set RYE_MCP_TOKEN to require a token\n"
            )
        finally:
            server.kill()
