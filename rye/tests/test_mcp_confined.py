"""``--confined`` offers confined tools only, and an agent cannot widen what a tool may do."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from confined_machine import needs
from mcp.types import CallToolResult
from mcp_session import HANDSHAKE, connected, text_of
from processes import wait_until
from rye.mcp.settings import ServerSettings
from rye.mcp.tool_list import CatalogueReader, ToolList
from rye_project import Project

CONFINED = ServerSettings(confined=True)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    project.settings()
    project.command("notes/free", "/bin/echo", "free")
    project.command("notes/held", "/bin/echo", "held", permissions={})
    # The settings of a repository cannot be protected if they do not exist, on any machine.
    (project.path / ".git").mkdir()
    (project.path / ".git" / "HEAD").touch()
    project.command("notes/writer", "/bin/echo", permissions={"write": ["{project_path}"]})
    return project


def call(project: Project, settings: ServerSettings, **arguments: Any) -> CallToolResult:
    async def run() -> CallToolResult:
        async with connected(project, HANDSHAKE, settings) as client:
            return await client.call_tool("execute", arguments)

    return asyncio.run(run())


def test_a_tool_without_permissions_is_not_available(project: Project) -> None:
    result = call(project, CONFINED, item_id="notes/free")
    assert result.is_error
    assert "item 'notes/free' is not available on this server" in text_of(result)
    assert not call(project, ServerSettings(), item_id="notes/free").is_error


@needs("fs", "net", "unix", "syscalls", "privileges")
def test_a_confined_tool_is_available(project: Project) -> None:
    assert "held" in text_of(call(project, CONFINED, item_id="notes/held"))


def test_an_agent_is_refused_what_cannot_be_enforced(project: Project) -> None:
    result = call(project, ServerSettings(), item_id="notes/writer")
    assert result.is_error
    text = text_of(result)
    assert "declares permissions that cannot be enforced here: " in text
    assert "the user decides" in text
    assert "--allow" not in text


def test_an_agent_cannot_widen_permissions(project: Project) -> None:
    result = call(project, ServerSettings(), item_id="notes/held", allow=["net"])
    assert result.is_error
    assert "allow" in text_of(result)


@pytest.mark.parametrize(
    ("only", "warned"),
    [
        (("notes/*",), ["1 offered tool is not confined, such as 'notes/free'"]),
        (("notes/held",), []),
    ],
)
def test_the_server_warns_about_offered_tools_that_are_not_confined(
    project: Project, caplog: pytest.LogCaptureFixture, only: tuple[str, ...], warned: list[str]
) -> None:
    settings = ServerSettings(only=only)
    tools = ToolList(project.context, settings, CatalogueReader(project.context))
    asyncio.run(tools.warn_unconfined())
    assert [message.partition(":")[0] for message in caplog.messages] == warned


def test_the_server_warns_soon_after_it_has_started(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    async def run() -> None:
        async with connected(project, HANDSHAKE, ServerSettings()) as client:
            await client.list_tools()
            warned = lambda: any("not confined" in one for one in caplog.messages)  # noqa: E731
            await asyncio.to_thread(wait_until, warned, "the warning")

    asyncio.run(run())
