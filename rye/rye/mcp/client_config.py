"""Configuration snippets for MCP clients, with absolute paths."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from rye.context import Context
from rye.errors import ParameterError
from rye.mcp.http_options import TOKEN_VARIABLE
from rye.mcp.settings import ServerSettings

_NAME = "rye"
_ADVICE = {
    "claude-code": "save it as .mcp.json in the project, or run:",
    "claude-desktop": "add it to claude_desktop_config.json (Settings, Developer, Edit Config)",
    "cursor": "save it as .cursor/mcp.json in the project, or as ~/.cursor/mcp.json",
    "vscode": "save it as .vscode/mcp.json in the project",
}
_INPUT_ID = "rye-mcp-token"
_TOKEN_REFERENCES = {
    "claude-code": f"${{{TOKEN_VARIABLE}}}",
    "cursor": f"${{env:{TOKEN_VARIABLE}}}",
    "vscode": f"${{input:{_INPUT_ID}}}",
}


class ClientConfig(NamedTuple):
    """The configuration to paste, and where to paste it."""

    content: dict[str, Any]
    advice: str


class HttpServer(NamedTuple):
    """An HTTP server that the user starts, as clients reach it."""

    url: str
    has_token: bool


def rye_command() -> tuple[str, ...]:
    """Return the command that starts this installation of ``rye`` from any directory."""
    called = Path(sys.argv[0])
    if called.name == "rye" and called.is_file():
        return (os.path.abspath(called),)  # noqa: PTH100 - keeps links, since upgrades replace their targets
    installed = Path(sys.executable).with_name("rye")
    if installed.is_file():
        return (str(installed),)
    found = shutil.which("rye")
    return (os.path.abspath(found),) if found else (sys.executable, "-m", "rye")  # noqa: PTH100 - as above


def stdio_config(
    client: str, context: Context, settings: ServerSettings, command: Sequence[str]
) -> ClientConfig:
    """Return the configuration for a server that the client starts."""
    flags = [
        *(["--all-tools"] if settings.all_tools else []),
        *(["--allow-sign"] if settings.allow_sign else []),
        *(f"--only={glob}" for glob in settings.only),
        *(["--confined"] if settings.confined else []),
        *(f"--ask={glob}" for glob in settings.ask),
        *(f"--allow={glob}" for glob in settings.allow),
        *(f"--deny={glob}" for glob in settings.deny),
        *([f"--max-calls={settings.max_calls}"] if settings.max_calls is not None else []),
        *([f"--log={settings.log}"] if settings.log is not None else []),
        *(["--receipts", "signed"] if settings.receipts else []),
    ]
    args = [*command[1:], "--project", str(context.project_path), "mcp", *flags]
    entry: dict[str, Any] = {"command": command[0], "args": args}
    space = context.environ.get("USER_SPACE")
    if space:
        entry["env"] = {"USER_SPACE": str(context.user_space)}
    variables = [f"--env={name}={value}" for name, value in entry.get("env", {}).items()]
    line = ["claude", "mcp", "add", *variables, "--transport", "stdio", _NAME, "--"]
    return _config(client, {"type": "stdio", **entry}, [*line, command[0], *args])


def http_config(client: str, server: HttpServer) -> ClientConfig:
    """Return the configuration for a server started with ``--http``, with a reference to the token.

    Raises :class:`ParameterError` for a client that supports only stdio.
    """
    if client == "claude-desktop":
        raise ParameterError(
            "invalid --print-config",
            ["claude-desktop supports only stdio servers that it starts itself"],
            hint="leave out --http",
        )
    entry: dict[str, Any] = {"type": "http", "url": server.url}
    line = ["claude", "mcp", "add", "--scope", "project", "--transport", "http", _NAME, server.url]
    if server.has_token:
        value = f"Bearer {_TOKEN_REFERENCES[client]}"
        entry["headers"] = {"Authorization": value}
        line += ["--header", f"Authorization: {value}"]
    config = _config(client, entry, line)
    if client == "vscode" and server.has_token:
        token_input = {
            "type": "promptString",
            "id": _INPUT_ID,
            "description": f"Token for rye mcp ({TOKEN_VARIABLE})",
            "password": True,
        }
        return config._replace(content={"inputs": [token_input], **config.content})
    return config


def _config(client: str, entry: dict[str, Any], line: Sequence[str]) -> ClientConfig:
    advice = _ADVICE[client]
    if client == "claude-code":
        advice = f"{advice}\n{shlex.join(line)}"
    if client in ("claude-desktop", "cursor"):
        entry = {key: value for key, value in entry.items() if key != "type"}
    key = "servers" if client == "vscode" else "mcpServers"
    return ClientConfig({key: {_NAME: entry}}, advice)
