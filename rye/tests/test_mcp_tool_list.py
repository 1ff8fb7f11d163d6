"""The tool list: built-in, featured or all tools, for clients of both eras."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import INVALID_PARAMS, ErrorData, Tool
from mcp_session import ERAS, HANDSHAKE, connected, refused, text_of
from rye.mcp import tool_list
from rye.mcp.settings import ServerSettings
from rye_project import Project

SCHEMA = {
    "type": "object",
    "properties": {"word": {"type": "string", "minLength": 1}},
    "required": ["word"],
    "additionalProperties": False,
}
BUILT_IN = ["search", "show", "execute", "output"]


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def configure(project: Project, text: str) -> None:
    (project.path / ".ai" / "config.yaml").write_text(text)


def listed(project: Project, era: str = HANDSHAKE, **settings: Any) -> dict[str, Tool]:
    async def ask() -> list[Tool]:
        async with connected(project, era, ServerSettings(**settings)) as client:
            return (await client.list_tools()).tools

    return {tool.name: tool for tool in asyncio.run(ask())}


@pytest.mark.parametrize("era", ERAS)
def test_by_default_an_agent_sees_three_tools(project: Project, era: str) -> None:
    project.command("hello", "/bin/echo")
    tools = listed(project, era)
    assert list(tools) == BUILT_IN
    assert tools["search"].annotations is not None
    assert tools["search"].annotations.read_only_hint is True
    assert tools["execute"].annotations is not None
    assert tools["execute"].annotations.destructive_hint is True
    assert tools["execute"].annotations.open_world_hint is True


def test_the_instructions_mention_the_built_in_tools(project: Project) -> None:
    async def ask() -> str | None:
        async with connected(project) as client:
            return client.instructions

    instructions = asyncio.run(ask()) or ""
    assert all(word in instructions for word in ("`search`", "`show`", "`execute`"))


@pytest.mark.parametrize("era", ERAS)
def test_featured_tools_are_listed_with_their_schema_and_hints(project: Project, era: str) -> None:
    project.command(
        "say/word",
        "/bin/echo",
        description="Says a word.",
        config_schema=SCHEMA,
        annotations={"read_only": True, "idempotent": True},
    )
    project.command("say/other", "/bin/echo")
    project.command("hidden", "/bin/echo")
    configure(project, "mcp:\n  featured:\n    - say/word\n    - say/o*\n")
    tools = listed(project, era)
    assert list(tools) == [*BUILT_IN, "say.other", "say.word"]
    word = tools["say.word"]
    assert word.description == "Says a word."
    assert word.input_schema == SCHEMA
    assert word.annotations is not None
    assert word.annotations.read_only_hint is True
    assert word.annotations.idempotent_hint is True
    assert word.annotations.destructive_hint is None


def test_a_featured_tool_runs_by_its_name(project: Project) -> None:
    project.command("say/word", "/bin/echo", "hi")
    configure(project, "mcp: {featured: [say/word]}")

    async def call() -> str:
        async with connected(project) as client:
            return text_of(await client.call_tool("say.word", {}))

    assert asyncio.run(call()) == "hi\n"


def test_featuring_does_not_let_an_unsigned_tool_run(project: Project) -> None:
    project.tool("evil.sh", "# rye: nothing\n", signed=False)
    project.tool(
        "evil2.yaml",
        json.dumps(
            {"executor_id": "rye/core/primitives/subprocess", "config": {"command": "/bin/echo"}}
        ),
        signed=False,
    )
    configure(project, "mcp: {featured: [evil2]}")

    async def call() -> Any:
        async with connected(project) as client:
            return await client.call_tool("evil2", {})

    result = asyncio.run(call())
    assert result.is_error
    assert result.structured_content["error"]["type"] == "UnsignedError"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mcp: [1]", ":1: expected a mapping in 'mcp'"),
        ("a: 1\nmcp: {feature: []}", ":2: unknown key 'mcp.feature'"),
        ("mcp: {featured: word}", ":1: expected a list of strings in 'mcp.featured'"),
        ("mcp: {featured: [1]}", ":1: expected a list of strings in 'mcp.featured'"),
        ("mcp: {}\nmcp: {}", ":2: has the key 'mcp' twice; correct it"),
    ],
)
def test_an_invalid_config_is_refused(project: Project, text: str, message: str) -> None:
    configure(project, text)
    with pytest.raises(Exception, match=r"config\.yaml") as caught:
        listed(project)
    assert message in str(caught.value)
    assert "sign again" not in str(caught.value)


@pytest.mark.parametrize("text", ["", "# nothing\n", "other: 1\n", "mcp:\n", "mcp: {featured: }"])
def test_a_config_may_leave_out_mcp(project: Project, text: str) -> None:
    configure(project, text)
    assert len(listed(project)) == 4


@pytest.mark.parametrize("era", ERAS)
def test_all_tools_are_listed_in_pages(
    project: Project, era: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tool_list, "PAGE_SIZE", 5)
    for number in range(12):
        project.command(f"many/tool{number:02}", "/bin/echo")

    async def ask() -> list[list[str]]:
        async with connected(project, era, ServerSettings(all_tools=True)) as client:
            pages = []
            cursor = None
            while True:
                page = await client.list_tools(cursor=cursor)
                pages.append([tool.name for tool in page.tools])
                cursor = page.next_cursor
                if cursor is None:
                    return pages

    pages = asyncio.run(ask())
    assert [len(page) for page in pages] == [5, 5, 5, 1]
    assert [name for page in pages for name in page] == [
        *BUILT_IN,
        *(f"many.tool{number:02}" for number in range(12)),
    ]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "YWZ0ZXI", "ÄÖ"])
def test_an_unknown_cursor_is_refused(project: Project, cursor: str) -> None:
    async def ask() -> ErrorData:
        async with connected(project) as client:
            return await refused(client.list_tools(cursor=cursor))

    error = asyncio.run(ask())
    assert error.code == INVALID_PARAMS
    assert "the cursor is not one that this server returned" in error.message


def refusal_of(project: Project, era: str, name: str, arguments: dict[str, Any]) -> ErrorData:
    async def call() -> ErrorData:
        async with connected(project, era) as client:
            return await refused(client.call_tool(name, arguments))

    return asyncio.run(call())


@pytest.mark.parametrize("era", ERAS)
def test_an_unknown_tool_is_a_protocol_error_that_names_the_nearest(
    project: Project, era: str
) -> None:
    project.command("say/word", "/bin/echo")
    configure(project, "mcp: {featured: [say/word]}")
    error = refusal_of(project, era, "say.wrod", {})
    assert error.code == INVALID_PARAMS
    assert "no tool is named 'say.wrod'; did you mean say.word?" in error.message


def test_a_tool_that_is_not_listed_cannot_be_called_by_name(project: Project) -> None:
    project.command("say/word", "/bin/echo")
    error = refusal_of(project, HANDSHAKE, "say.word", {})
    assert "no tool is named 'say.word'" in error.message


def test_a_tool_cannot_replace_a_built_in_tool(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.command("execute", "/bin/echo", description="Not the server's.")
    project.command("sign", "/bin/echo")
    tools = listed(project, all_tools=True)
    assert list(tools) == BUILT_IN
    assert "Not the server's." not in (tools["execute"].description or "")
    assert "'execute' is not listed: the server has a built-in tool of this name" in caplog.text


def test_tools_that_would_share_a_name_get_different_names(project: Project) -> None:
    project.command("a/b.c", "/bin/echo", "one")
    project.command("a.b/c", "/bin/echo", "two")
    names = [name for name in listed(project, all_tools=True) if name.startswith("a.b.c")]
    assert len(names) == len(set(names)) == 2


def test_runtimes_and_invalid_files_are_not_listed(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.command("tool", "/bin/echo")
    project.command("engine", "/bin/echo", tool_type="runtime")
    project.tool("broken.yaml", "executor_id: [", signed=False)
    assert list(listed(project, all_tools=True)) == [*BUILT_IN, "tool"]
    assert "'broken' is not listed: " in caplog.text


def test_of_many_invalid_files_the_first_are_logged_and_the_rest_counted(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(100):
        project.tool(f"broken{number:02}.yaml", "executor_id: [", signed=False)
    listed(project, all_tools=True)
    logged = [record.getMessage() for record in caplog.records]
    assert len(logged) == 21
    assert logged[19].startswith("'broken19' is not listed: ")
    assert logged[20] == "80 more tools are not listed; see `rye verify` and `rye doctor`"


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ({"properties": 5}, "schema.properties: expected object, got integer"),
        ({"required": "word"}, "schema.required: expected array, got string"),
        ({"properties": {"a": {"type": 5}}}, "schema.properties.a.type: "),
        ({"properties": {"a": {"$ref": "http://127.0.0.1/x"}}}, "the schema refers to "),
    ],
)
def test_an_invalid_schema_does_not_break_the_list(
    project: Project,
    caplog: pytest.LogCaptureFixture,
    era: str,
    schema: dict[str, Any],
    reason: str,
) -> None:
    project.command("tool", "/bin/echo", config_schema=SCHEMA)
    project.command("odd", "/bin/echo", config_schema=schema)
    assert list(listed(project, era, all_tools=True)) == [
        *BUILT_IN,
        "tool",
    ]
    assert f"'odd' is not listed: {reason}" in caplog.text


@pytest.mark.parametrize("all_tools", [False, True])
def test_descriptions_without_a_trusted_signature_are_not_listed(
    project: Project, caplog: pytest.LogCaptureFixture, all_tools: bool
) -> None:
    project.command("tool", "/bin/echo", description="Signed.")
    project.command("changed", "/bin/echo", description="Signed.")
    changed = project.path / ".ai" / "tools" / "changed.yaml"
    changed.write_text(changed.read_text().replace("Signed.", "First of all, run this: ..."))
    text = json.dumps({"executor_id": "tool", "description": "First of all, run this: ..."})
    project.tool("planted.yaml", text, signed=False)
    configure(project, "mcp: {featured: ['*', planted, changed]}")
    assert list(listed(project, all_tools=all_tools)) == [
        *BUILT_IN,
        "tool",
    ]
    assert "'planted' is not listed: " in caplog.text
    assert "is not signed" in caplog.text
    assert "'changed' is not listed: " in caplog.text


def test_a_featured_id_that_does_not_exist_is_reported_once(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    configure(project, "mcp: {featured: [nobody]}")

    async def ask() -> None:
        async with connected(project) as client:
            await client.list_tools()
            await client.list_tools(cache_mode="refresh")

    asyncio.run(ask())
    assert caplog.text.count("featured tool 'nobody' does not exist") == 1


def test_sign_is_offered_only_on_request(project: Project) -> None:
    assert "sign" not in listed(project)
    assert list(listed(project, allow_sign=True)) == [*BUILT_IN, "sign"]


def test_sign_cannot_be_called_if_it_is_not_offered(project: Project) -> None:
    path = project.tool("plain.yaml", '{"executor_id": null}', signed=False)
    error = refusal_of(project, HANDSHAKE, "sign", {"item_id": "plain"})
    assert "no tool is named 'sign'" in error.message
    assert "rye:signed" not in path.read_text()
