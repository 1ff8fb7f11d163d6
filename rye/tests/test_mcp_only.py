"""``--only`` hides tools from clients, which can neither see nor run them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult
from mcp_session import ERAS, HANDSHAKE, connected, refused, text_of
from rye.mcp.settings import ServerSettings
from rye_project import Project

NOTES = ServerSettings(only=("notes/*", "say"))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path, shipped_system=True)
    for item_id in ("notes/add", "notes/old/all", "other/secret", "say", "deep/say_not"):
        project.command(item_id, "/bin/echo", item_id, description="Made for this test.")
    return project


def call(
    project: Project, name: str, settings: ServerSettings = NOTES, **arguments: Any
) -> CallToolResult:
    async def run() -> CallToolResult:
        async with connected(project, HANDSHAKE, settings) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(run())


HIDDEN = [
    "other/secret",
    "secret",
    "rye/bash/bash",
    "bash",
    "subprocess",
    "rye/core/primitives/subprocess",
    "python_runtime",
    "nobody",
    "notes/ad",
]


@pytest.mark.parametrize(
    ("name", "more"), [("execute", {}), ("execute", {"dry_run": True}), ("show", {})]
)
def test_a_hidden_item_is_reported_as_missing(
    project: Project, name: str, more: dict[str, Any]
) -> None:
    async def run() -> list[CallToolResult]:
        async with connected(project, HANDSHAKE, NOTES) as client:
            return [await client.call_tool(name, {"item_id": one, **more}) for one in HIDDEN]

    for item_id, result in zip(HIDDEN, asyncio.run(run()), strict=True):
        assert result.is_error
        hint = "find available items with `search`"
        assert result.structured_content == {
            "error": {
                "type": "ItemNotFoundError",
                "message": f"item {item_id!r} is not available on this server; {hint}",
                "hint": hint,
            }
        }


@pytest.mark.parametrize(
    ("item_id", "output"),
    [
        ("notes/add", "notes/add\n"),
        ("add", "notes/add\n"),
        ("notes/old/all", "notes/old/all\n"),
        ("say", "say\n"),
    ],
)
def test_an_offered_item_runs_also_by_its_short_id(
    project: Project, item_id: str, output: str
) -> None:
    assert text_of(call(project, "execute", item_id=item_id)) == output
    assert not call(project, "show", item_id=item_id).is_error


@pytest.mark.parametrize("query", ["made for this test", "", "echo bash secret note"])
def test_search_finds_only_offered_items(project: Project, query: str) -> None:
    found = call(project, "search", query=query, limit=100).structured_content["tools"]
    assert {tool["item_id"] for tool in found} <= {"notes/add", "notes/old/all", "say"}
    assert found


def test_hidden_items_do_not_use_up_the_limit_of_a_search(project: Project) -> None:
    for number in range(5):
        project.command(f"other/note{number}", "/bin/echo", description="note note note")
    found = call(project, "search", query="note", limit=1).structured_content["tools"]
    assert [tool["item_id"].split("/")[0] for tool in found] == ["notes"]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("all_tools", [False, True])
def test_neither_featuring_nor_listing_all_tools_reveals_a_hidden_item(
    project: Project, era: str, all_tools: bool
) -> None:
    config = "mcp: {featured: ['*', rye/bash/bash, other/secret]}\n"
    (project.path / ".ai" / "config.yaml").write_text(config)

    async def run() -> tuple[list[str], str]:
        settings = NOTES._replace(all_tools=all_tools)
        async with connected(project, era, settings) as client:
            names = [tool.name for tool in (await client.list_tools()).tools]
            return names, (await refused(client.call_tool("other.secret", {}))).message

    names, message = asyncio.run(run())
    assert names == ["search", "show", "execute", "output", "notes.add", "notes.old.all", "say"]
    assert message.startswith("no tool is named 'other.secret'; ")


def test_a_hidden_item_is_not_signed(project: Project) -> None:
    path = project.tool("other/new.yaml", '{"executor_id": null}', signed=False)
    result = call(project, "sign", NOTES._replace(allow_sign=True), item_id="other/new")
    assert "item 'other/new' is not available on this server" in text_of(result)
    assert "rye:signed" not in path.read_text()


def test_a_glob_that_matches_nothing_hides_everything(project: Project) -> None:
    settings = ServerSettings(all_tools=True, only=("",))
    assert call(project, "search", settings, query="").structured_content == {
        "tools": [],
        "total": 0,
        "next": "nothing matches; try other words, or list all tools with an empty query",
    }
    assert call(project, "execute", settings, item_id="say").is_error
