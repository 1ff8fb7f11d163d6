"""The configuration that ``rye mcp --print-config`` prints works without edits."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest
from rye.errors import ParameterError
from rye.mcp.client_config import HttpServer, http_config, rye_command, stdio_config
from rye.mcp.settings import CLIENTS, ServerSettings
from rye_command import rye
from rye_project import Project

URL = "http://127.0.0.1:8321/mcp"
SECRET = "hunter2-hunter2-hunter2"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path / "a folder")


def entry_of(content: dict[str, Any]) -> dict[str, Any]:
    (servers,) = (value for key, value in content.items() if key != "inputs")
    entry: dict[str, Any] = servers["rye"]
    return entry


@pytest.mark.parametrize("client", CLIENTS)
def test_a_client_starts_this_rye_for_this_project(project: Project, client: str) -> None:
    settings = ServerSettings(all_tools=True, allow_sign=True, only=("notes/*", "-x"))
    config = stdio_config(client, project.context, settings, ("/opt/my rye/bin/rye",))
    entry = entry_of(config.content)
    assert entry["command"] == "/opt/my rye/bin/rye"
    assert entry["args"] == [
        "--project",
        str(project.path.resolve()),
        "mcp",
        "--all-tools",
        "--allow-sign",
        "--only=notes/*",
        "--only=-x",
    ]
    assert "env" not in entry


def test_each_client_gets_its_format(project: Project) -> None:
    def keys(client: str) -> tuple[str, Any]:
        content = stdio_config(client, project.context, ServerSettings(), ("/rye",)).content
        (key,) = content
        return key, entry_of(content).get("type")

    assert {client: keys(client) for client in CLIENTS} == {
        "claude-code": ("mcpServers", "stdio"),
        "claude-desktop": ("mcpServers", None),
        "cursor": ("mcpServers", None),
        "vscode": ("servers", "stdio"),
    }


def test_the_command_line_for_claude_code_is_quoted_for_a_shell(project: Project) -> None:
    config = stdio_config("claude-code", project.context, ServerSettings(), ("/opt/my rye",))
    words = shlex.split(config.advice.splitlines()[-1])
    assert words == [
        *("claude", "mcp", "add", "--transport", "stdio", "rye", "--"),
        *("/opt/my rye", "--project", str(project.path.resolve()), "mcp"),
    ]


def test_another_user_space_is_passed_on(project: Project) -> None:
    project.environ["USER_SPACE"] = "relative"
    config = stdio_config("cursor", project.context, ServerSettings(), ("/rye",))
    assert entry_of(config.content)["env"] == {"USER_SPACE": str(project.user.resolve())}


@pytest.mark.parametrize(
    ("client", "reference"),
    [
        ("claude-code", "Bearer ${RYE_MCP_TOKEN}"),
        ("cursor", "Bearer ${env:RYE_MCP_TOKEN}"),
        ("vscode", "Bearer ${input:rye-mcp-token}"),
    ],
)
def test_a_token_is_only_referenced(client: str, reference: str) -> None:
    config = http_config(client, HttpServer(URL, has_token=True))
    entry = entry_of(config.content)
    assert entry["url"] == URL
    assert entry["headers"] == {"Authorization": reference}
    if client == "vscode":
        (token_input,) = config.content["inputs"]
        assert token_input["id"] == "rye-mcp-token"
        assert token_input["password"] is True
    if client == "claude-code":
        # Single quotes, so that the shell does not put the token on a command line.
        assert f"'Authorization: {reference}'" in config.advice


@pytest.mark.parametrize("client", ["claude-code", "cursor", "vscode"])
def test_without_a_token_there_is_no_header(client: str) -> None:
    config = http_config(client, HttpServer(URL, has_token=False))
    assert "headers" not in entry_of(config.content)
    assert "inputs" not in config.content
    assert "Authorization" not in config.advice


def test_http_is_refused_for_claude_desktop() -> None:
    with pytest.raises(ParameterError) as caught:
        http_config("claude-desktop", HttpServer(URL, has_token=False))
    assert str(caught.value) == (
        "invalid --print-config: claude-desktop supports only stdio servers that it starts itself; "
        "leave out --http"
    )


def test_the_command_is_an_existing_absolute_path() -> None:
    command, *_ = rye_command()
    assert Path(command).is_absolute()
    assert Path(command).is_file()


@pytest.mark.parametrize("arguments", [[], ["--http", "127.0.0.1:8321"]])
def test_stdout_is_json_without_the_advice(project: Project, arguments: list[str]) -> None:
    done = rye(
        *("mcp", "--print-config", "claude-code", *arguments),
        cwd=project.path,
        user=project.user,
        env={"RYE_MCP_TOKEN": SECRET},
    )
    assert done.code == 0, done.stderr
    assert entry_of(json.loads(done.stdout))["type"] in ("stdio", "http")
    assert "claude mcp add" in done.stderr
    assert SECRET not in done.stdout + done.stderr


def test_the_printed_command_is_the_interpreter_that_printed_it(project: Project) -> None:
    done = rye("mcp", "--print-config", "vscode", cwd=project.path, user=project.user)
    assert entry_of(json.loads(done.stdout))["command"].startswith(str(Path(sys.executable).parent))
