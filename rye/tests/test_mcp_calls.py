"""Calls over MCP: results, errors and cancellation."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from mcp.types import CallToolResult
from mcp_session import ERAS, HANDSHAKE, connected, text_of
from processes import Tree, assert_ended, wait_until
from rye.mcp.settings import ServerSettings
from rye_project import Project

SECONDS = 30


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def shell(project: Project, item_id: str, script: str, **fields: Any) -> None:
    project.command(item_id, "/bin/sh", "-c", script, **fields)


def call(
    project: Project, name: str, arguments: dict[str, Any], era: str = HANDSHAKE, **settings: Any
) -> CallToolResult:
    async def run() -> CallToolResult:
        async with connected(project, era, ServerSettings(**settings)) as client:
            return await client.call_tool(name, arguments)

    return asyncio.run(run())


def execute(project: Project, item_id: str, era: str = HANDSHAKE, **more: Any) -> CallToolResult:
    return call(project, "execute", {"item_id": item_id, **more}, era)


@pytest.mark.parametrize("era", ERAS)
def test_an_object_is_structured_content_and_text(project: Project, era: str) -> None:
    shell(project, "thing", """echo '{"name": "ä", "sizes": [1, 2.5, null]}'""")
    result = execute(project, "thing", era)
    assert not result.is_error
    assert result.structured_content == {"name": "ä", "sizes": [1, 2.5, None]}
    assert json.loads(text_of(result)) == result.structured_content


@pytest.mark.parametrize("era", ERAS)
def test_a_value_that_is_not_an_object_is_text(project: Project, era: str) -> None:
    shell(project, "list", "echo '[1, 2]'")
    shell(project, "text", r"""printf '"one\\ntwo: \\"\\u00e4\\""' """)
    shell(project, "number", "echo 1.10")
    results = [execute(project, name, era) for name in ("list", "text", "number")]
    assert [one.structured_content for one in results] == [None, None, None]
    # A runtime returns text as one JSON string; here it arrives as `rye run` prints it.
    assert list(map(text_of, results)) == ["[1, 2]", 'one\ntwo: "ä"\n', "1.10\n"]


def test_plain_output_is_passed_on_unchanged(project: Project) -> None:
    shell(project, "plain", "echo hello; echo careful >&2")
    result = execute(project, "plain")
    assert text_of(result) == "hello\n\nstderr:\ncareful\n"
    assert result.structured_content is None


def test_output_that_is_not_utf8_does_not_end_the_server(project: Project) -> None:
    shell(project, "bytes", r"printf '\377\376ok\n'")
    shell(project, "half", r"""printf '{"half": "\\ud800"}'""")

    async def run() -> list[CallToolResult]:
        async with connected(project) as client:
            return [
                await client.call_tool("execute", {"item_id": name})
                for name in ("bytes", "half", "bytes")
            ]

    first, half, again = asyncio.run(run())
    for result in (first, again):
        assert result.content[0].text.startswith("[the tool printed 5 bytes that are not text; ")  # type: ignore[union-attr]
    assert "ud800" in text_of(half)


@pytest.mark.parametrize("era", ERAS)
def test_a_failing_tool_is_reported_with_its_type_and_output(project: Project, era: str) -> None:
    shell(project, "bad", "echo half done; echo 'no space' >&2; exit 7")
    result = execute(project, "bad", era)
    assert result.is_error
    error = result.structured_content["error"]
    assert error["type"] == "ToolFailed"
    assert error["return_code"] == 7
    assert error["message"] == "'bad' ended with exit code 7: no space"
    # The text has the whole output, so it says each thing once.
    assert text_of(result) == "'bad' ended with exit code 7\n\nhalf done\n\nstderr:\nno space\n"


def test_a_timeout_keeps_the_output(project: Project) -> None:
    shell(project, "slow", "echo started; exec sleep 600")
    result = execute(project, "slow", timeout=0.5)
    assert result.is_error
    assert result.structured_content["error"]["type"] == "ToolTimedOut"
    assert result.structured_content["error"]["timed_out"] is True
    assert result.structured_content["error"]["hint"] == "raise the timeout, or reduce the work"
    assert text_of(result).count("timed out") == 1
    assert text_of(result).endswith("\n\nstarted\n")


def test_the_error_for_an_unknown_item_suggests_the_nearest(project: Project) -> None:
    shell(project, "files/read", "true")
    result = execute(project, "files/raed")
    assert result.is_error
    error = result.structured_content["error"]
    assert error["type"] == "ItemNotFoundError"
    assert error["nearest"] == ["files/read"]
    assert error["hint"] == "did you mean files/read?"


@pytest.mark.parametrize("tool", ["show", "execute"])
def test_an_agent_is_not_told_to_run_a_command_to_find_items(project: Project, tool: str) -> None:
    result = call(project, tool, {"item_id": "nothing/like/this"})
    assert text_of(result) == (
        "there is no item 'nothing/like/this'; find available items with `search`"
    )


def test_parameters_are_validated_against_the_schema_of_the_tool(project: Project) -> None:
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
    shell(project, "count", "true", config_schema=schema)
    result = execute(project, "count", parameters={"n": "many"})
    assert result.is_error
    assert result.structured_content["error"]["type"] == "ParameterError"
    assert text_of(result) == (
        "invalid parameters for 'count': parameters.n: expected integer, got string; "
        "see its parameters with `show`"
    )


def test_a_misspelt_parameter_gets_the_name_that_was_meant(project: Project) -> None:
    properties = {"number": {"type": "integer", "default": 1}, "text": {"type": "string"}}
    schema = {"type": "object", "properties": properties, "additionalProperties": False}
    shell(project, "count", "true", config_schema=schema)
    result = execute(project, "count", parameters={"nubmer": 7, "text": "x", "else": 1})
    assert text_of(result).endswith(
        "; did you mean 'number' for 'nubmer'? see its parameters with `show`"
    )
    people_read = project.run("count", {"nubmer": 7}).error or ""
    assert "; did you mean 'number' for 'nubmer'? follow the schema in " in people_read


def test_search_says_how_many_there_are_and_finds_nothing_unrelated(project: Project) -> None:
    for name in ("one", "two", "three"):
        shell(project, f"notes/{name}", "true", description="Says whether a location is known.")
    few = call(project, "search", {"query": "notes", "limit": 2}).structured_content
    assert [len(few["tools"]), few["total"], few["next"]] == [
        2,
        3,
        "1 more match; add words, or raise limit",
    ]
    # `cat` is a part of `location`, and `whether` is similar to `weather`.
    for query in ("cat", "weather"):
        assert call(project, "search", {"query": query}).structured_content["total"] == 0


@pytest.mark.parametrize(
    ("name", "arguments", "message"),
    [
        ("execute", {}, "item_id"),
        ("execute", {"item_id": "x", "params": {}}, "params"),
        ("execute", {"item_id": "x", "timeout": "1"}, "timeout"),
        ("search", {"query": 1}, "query"),
        ("search", {"query": "x", "limit": 0}, "limit"),
        ("show", {"item_id": ""}, "item_id"),
    ],
)
def test_built_in_tools_validate_their_arguments(
    project: Project, name: str, arguments: dict[str, Any], message: str
) -> None:
    result = call(project, name, arguments)
    assert result.is_error
    assert result.structured_content["error"]["type"] == "ParameterError"
    assert f"invalid arguments for '{name}': " in text_of(result)
    assert message in text_of(result)
    assert result.structured_content["error"]["hint"].endswith(
        "call it with arguments that match its schema"
    )


def test_a_misspelt_argument_of_a_built_in_tool_gets_the_name_that_was_meant(
    project: Project,
) -> None:
    assert text_of(execute(project, "x", params={})) == (
        "invalid arguments for 'execute': parameters: unexpected property 'params'; "
        "did you mean 'parameters' for 'params'? call it with arguments that match its schema"
    )


def test_null_means_that_an_argument_of_a_built_in_tool_is_left_out(project: Project) -> None:
    shell(project, "plain", "echo ok")
    result = execute(project, "plain", timeout=None, parameters=None, dry_run=None)
    assert text_of(result) == "ok\n"


def test_a_whole_number_with_a_fraction_of_zero_is_an_integer(project: Project) -> None:
    shell(project, "plain", "echo ok")
    result = execute(project, "plain", max_output=2000.0, timeout=20.0)
    assert text_of(result) == "ok\n"


def test_a_dry_run_runs_nothing(project: Project, tmp_path: Path) -> None:
    shell(project, "touch", f"touch {tmp_path}/ran")
    result = execute(project, "touch", dry_run=True)
    assert not result.is_error
    assert result.structured_content
    assert not (tmp_path / "ran").exists()


def test_search_finds_and_show_explains(project: Project) -> None:
    path = {"type": "string", "examples": ["/home"]}
    schema = {"type": "object", "properties": {"path": path}, "required": ["path"]}
    shell(
        project, "disk/usage", "true", description="Shows how full a disk is.", config_schema=schema
    )
    shell(project, "other", "true")
    found = call(project, "search", {"query": "disk full", "limit": 1})
    assert found.structured_content == {
        "tools": [
            {
                "item_id": "disk/usage",
                "description": "Shows how full a disk is.",
                "parameters": ["path"],
            }
        ],
        "total": 1,
        "next": "read the parameters of a tool with `show`, and run it with `execute`",
    }
    shown = call(project, "show", {"item_id": "usage"}).structured_content
    assert shown["item_id"] == "disk/usage"
    assert shown["input_schema"] == schema
    assert shown["example"] == {"item_id": "disk/usage", "parameters": {"path": "/home"}}


def test_an_empty_query_lists_all_tools(project: Project) -> None:
    shell(project, "one", "true")
    shell(project, "two", "true")
    project.command("engine", "/bin/true", tool_type="runtime")
    found = call(project, "search", {"query": " "}).structured_content
    assert [tool["item_id"] for tool in found["tools"]] == ["one", "two"]


def test_sign_lets_a_tool_run(project: Project) -> None:
    config = {"command": "/bin/echo", "args": ["signed"]}
    text = json.dumps({"executor_id": "rye/core/primitives/subprocess", "config": config})
    project.tool("fresh.yaml", text, signed=False)

    async def run() -> tuple[CallToolResult, CallToolResult, CallToolResult]:
        async with connected(project, HANDSHAKE, ServerSettings(allow_sign=True)) as client:
            return (
                await client.call_tool("execute", {"item_id": "fresh"}),
                await client.call_tool("sign", {"item_id": "fresh"}),
                await client.call_tool("execute", {"item_id": "fresh"}),
            )

    before, signed, after = asyncio.run(run())
    assert before.structured_content["error"]["type"] == "UnsignedError"
    assert signed.structured_content["item_id"] == "fresh"
    assert text_of(after) == "signed\n"


def test_sign_refuses_items_of_the_system_space(tmp_path: Path) -> None:
    project = Project(tmp_path, shipped_system=True)
    result = call(project, "sign", {"item_id": "rye/bash/bash"}, allow_sign=True)
    assert result.is_error
    assert "'rye/bash/bash' belongs to the system space" in text_of(result)


def test_sign_refuses_a_tool_that_would_run_a_callers_text(project: Project) -> None:
    config = {"command": "sh", "args": ["-c", "echo {x}"]}
    text = json.dumps({"executor_id": "rye/core/primitives/subprocess", "config": config})
    path = project.tool("careless.yaml", text, signed=False)
    result = call(project, "sign", {"item_id": "careless"}, allow_sign=True)
    assert result.is_error
    assert "{x} is part of text that a program may run" in text_of(result)
    assert path.read_text() == text


def test_several_calls_run_at_once(project: Project, tmp_path: Path) -> None:
    for mine, other in (("a", "b"), ("b", "a")):
        wait = f"touch {tmp_path}/{mine}; while [ ! -e {tmp_path}/{other} ]; do sleep 0.01; done"
        shell(project, mine, wait)

    async def run() -> list[CallToolResult]:
        async with connected(project) as client, asyncio.timeout(SECONDS):
            return await asyncio.gather(
                *(client.call_tool("execute", {"item_id": name}) for name in ("a", "b"))
            )

    assert [result.is_error for result in asyncio.run(run())] == [False, False]


@pytest.mark.parametrize("era", ERAS)
def test_cancelling_a_call_ends_the_whole_tree(project: Project, tmp_path: Path, era: str) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> None:
        async with connected(project, era) as client:
            calling = asyncio.create_task(client.call_tool("execute", {"item_id": "tree"}))
            running = await asyncio.to_thread(tree.processes)
            calling.cancel()
            await asyncio.wait([calling])
            await asyncio.to_thread(assert_ended, running)
            # The server still works.
            assert (await client.list_tools()).tools

    asyncio.run(run())


def test_an_unexpected_exception_does_not_repeat_values(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    def explode(*_: object, **__: object) -> None:
        raise LookupError("the secret is hunter2")

    monkeypatch.setattr("rye.catalogue.catalogue.Catalogue.entry", explode)
    result = call(project, "show", {"item_id": "x"})
    assert result.is_error
    assert result.structured_content["error"]["type"] == "LookupError"
    assert "hunter2" not in result.model_dump_json()


def test_a_failure_does_not_reveal_the_environment(project: Project) -> None:
    project.environ["MY_SECRET"] = "hunter2"
    shell(project, "quiet", "exit 3")
    assert "hunter2" not in execute(project, "quiet").model_dump_json()


def test_closing_the_connection_ends_running_tools(project: Project, tmp_path: Path) -> None:
    tree = Tree(tmp_path / "tree")
    shell(project, "tree", tree.script())

    async def run() -> dict[str, Any]:
        async with connected(project) as client:
            calling = asyncio.create_task(client.call_tool("execute", {"item_id": "tree"}))
            running = await asyncio.to_thread(tree.processes)
            calling.cancel()
        return running

    running = asyncio.run(run())
    wait_until(lambda: running, "the tree started")
    assert_ended(running)
