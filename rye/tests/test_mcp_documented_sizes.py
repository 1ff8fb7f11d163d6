"""The table in docs/mcp.md of how much an agent reads is true."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest
from mcp.types import TextContent
from mcp_session import connected, text_of
from rye.mcp.budget import DEFAULT_BUDGET
from rye_project import Project

PAGE = Path(__file__).parents[2] / "docs" / "mcp.md"
NAME = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}


def documented(row: str) -> int:
    """Return the number of characters in a row of the table."""
    found = re.search(rf"^\| {re.escape(row)}[^|]*\| ([\d,]+) \|$", PAGE.read_text(), re.MULTILINE)
    assert found, f"{PAGE} has no row {row!r}"
    return int(found[1].replace(",", ""))


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("hello", "/bin/echo", config_schema=NAME)
    project.command("numbers", "/usr/bin/seq", "1", "200000")
    return project


def test_the_documented_sizes_are_true(project: Project) -> None:
    async def run() -> tuple[int, int, int]:
        async with connected(project) as client:
            tools = (await client.list_tools()).tools
            texts = [tool.model_dump_json(by_alias=True, exclude_none=True) for tool in tools]
            wrong = {"item_id": "hello", "parameters": {"nmae": "Ada"}}
            error = await client.call_tool("execute", wrong)
            assert error.is_error
            long = await client.call_tool("execute", {"item_id": "numbers"})
            content = long.content[0]
            assert isinstance(content, TextContent)
            return sum(map(len, texts)), len(text_of(error)), len(content.text)

    listed, error, long = asyncio.run(run())
    assert documented("the first list") == listed
    assert documented("a typical error") == error
    assert documented("the largest result") == DEFAULT_BUDGET
    assert 0.95 * DEFAULT_BUDGET < long <= DEFAULT_BUDGET
