"""``rye tools``: definitions on stdout, errors on stderr."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from rye_console import Console


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Console:
    return Console(tmp_path_factory.mktemp("tools"))


def printed(console: Console, *args: str) -> list[dict[str, Any]]:
    done = console("tools", *args)
    assert done.code == 0, done.stderr
    made: list[dict[str, Any]] = json.loads(done.stdout)
    return made


def test_mcp_is_the_default_and_valid_for_the_official_sdk(console: Console) -> None:
    from mcp.types import Tool

    tools = [Tool.model_validate(each, by_alias=True, by_name=False) for each in printed(console)]
    grep = next(tool for tool in tools if tool.name == "rye.fs.grep")
    assert grep.annotations is not None
    assert grep.annotations.read_only_hint is True
    assert grep.input_schema["required"] == ["pattern"]


def test_openai_gets_function_tools(console: Console) -> None:
    for each in printed(console, "--format", "openai"):
        assert set(each) == {"type", "function"}
        assert each["type"] == "function"
        assert set(each["function"]) == {"name", "description", "parameters"}
        assert re.fullmatch(r"[a-zA-Z0-9_-]{1,64}", each["function"]["name"])
        assert each["function"]["parameters"]["type"] == "object"


def test_anthropic_gets_input_schemas(console: Console) -> None:
    made = printed(console, "--format", "anthropic")
    assert all(set(each) == {"name", "description", "input_schema"} for each in made)
    assert "rye__fs__read" in [each["name"] for each in made]


def test_prefixes_and_all(console: Console) -> None:
    names = [each["name"] for each in printed(console, "rye/fs/r", "rye/bash/")]
    assert names == ["rye.bash.bash", "rye.fs.read"]
    assert "rye.core.runtimes.bash_runtime" in [each["name"] for each in printed(console, "--all")]


def test_an_unreadable_file_is_omitted_and_reported(console: Console) -> None:
    path = console.project.tool("broken.yaml", "executor_id: 3\n", signed=False)
    try:
        done = console("tools", "b")
        assert json.loads(done.stdout) == []
        assert done.stderr.startswith("rye: .ai/tools/broken.yaml:1: expected an item id")
    finally:
        path.unlink()


def test_of_many_unreadable_files_the_first_are_named_and_the_rest_counted(
    console: Console,
) -> None:
    paths = [
        console.project.tool(f"broken{number}.yaml", "executor_id: 3\n", signed=False)
        for number in range(21)
    ]
    try:
        errors = console("tools", "b").stderr.splitlines()
        assert len(errors) == 21
        assert errors[20] == "rye: 1 more file cannot be used; list them with: rye doctor"
    finally:
        for path in paths:
            path.unlink()


def test_an_unknown_format_is_misuse(console: Console) -> None:
    assert console("tools", "--format", "xml").code == 2
