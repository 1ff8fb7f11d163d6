"""The items of an imported server: one file for the server, and one for each of its tools."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from lilux.files.atomic import atomic_write
from lilux.primitives.errors import SchemaError
from lilux.record import Record
from lilux.schemas.schema_validator import compile_once

from rye.cli.imports.servers import Server
from rye.context import Context
from rye.errors import RyeError
from rye.items.metadata import parse_metadata
from rye.items.reader import read_item
from rye.spaces.ids import check_item_id
from rye.spaces.model import Space, SpaceName
from rye.trust.operations import sign_items, verify_paths
from rye.upstream.definition import ToolDefinition

STDIO_RUNTIME = "rye/core/runtimes/mcp_server_runtime"
HTTP_RUNTIME = "rye/core/runtimes/mcp_http_runtime"
_VERSION = "1.0.0"


class Imported(Record, frozen=True):
    """The files of one server in a space."""

    space: Space
    server: Server
    permissions: Mapping[str, Any] | None
    """As an author writes them; ``None`` leaves the server unconfined."""
    token: bool = False
    """The token of this server is in the user's store."""

    @property
    def server_path(self) -> Path:
        """The file of the server."""
        return self.space.tools / f"{self.server.name}.yaml"

    def tool_path(self, tool: str) -> Path:
        """The file of a tool."""
        return self.space.tools / self.server.name / f"{tool}.yaml"

    def pinned(self, context: Context) -> dict[str, str]:
        """The digest of each tool that was imported before.

        Raises :class:`RyeError` if a file is not what a trusted key signed: the tools that the
        server offers are compared with it.
        """
        found: dict[str, str] = {}
        folder = self.space.tools / self.server.name
        for path in sorted(folder.glob("**/*.yaml")):
            metadata = parse_metadata(read_item(path, self.space.root))
            tool = metadata.config.get("mcp_tool")
            if metadata.executor_id == self.server.name and isinstance(tool, Mapping):
                require_signed(path, context)
                name = str(tool.get("name"))
                if path == self.tool_path(name):
                    found[name] = str(tool.get("pinned"))
        return found

    def occupied(self, path: Path, pinned: Mapping[str, str]) -> str:
        """Why an item cannot be written to ``path``: another item has its name; empty if not."""
        own = {self.server_path, *map(self.tool_path, pinned)}
        found = [one for one in path.parent.glob("*") if one.stem == path.stem and one.is_file()]
        other = next((one for one in sorted(found) if one not in own), None)
        return "" if other is None else f"{other} has this name"

    def write(self, tools: Mapping[str, ToolDefinition], context: Context) -> None:
        """Write and sign the files of the server and of these tools; remove those of others."""
        for name in self.pinned(context).keys() - tools.keys():
            self.tool_path(name).unlink(missing_ok=True)
        texts = {self.server_path: self._server_item(context)}
        texts |= {self.tool_path(name): self._tool_item(one) for name, one in tools.items()}
        for path, content in texts.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            atomic_write(path, _yaml(content))
        sign_items(list(texts), context)

    def _server_item(self, context: Context) -> dict[str, Any]:
        server = self.server
        item: dict[str, Any] = {
            "version": _VERSION,
            "tool_type": "runtime",
            "executor_id": HTTP_RUNTIME if server.url else STDIO_RUNTIME,
            "category": "mcp",
            "description": f"The MCP server {server.name}; its tools are {server.name}/…",
        }
        if server.url:
            item["config"] = {"url": server.url}
            if self.token:
                item["config"]["token_of"] = server.name
        else:
            command, *arguments = server.command
            item["config"] = {"command": command, "args": arguments}
            if files := list(_project_files(server.command, context)):
                item["pins"] = files
        if server.variables:
            item["config"]["env"] = {name: f"${{{name}}}" for name in server.variables}
        return item | self._confinement()

    def _tool_item(self, tool: ToolDefinition) -> dict[str, Any]:
        item: dict[str, Any] = {
            "version": _VERSION,
            "tool_type": "mcp",
            "executor_id": self.server.name,
            "category": self.server.name.rpartition("/")[2],
            "description": tool.description or f"The tool {tool.name} of {self.server.name}",
            "config_schema": dict(tool.schema),
            "config": {"mcp_tool": {"name": tool.name, "pinned": tool.digest}},
        }
        if tool.annotations:
            item["annotations"] = tool.annotations
        return item | self._confinement()

    def _confinement(self) -> dict[str, Any]:
        return {} if self.permissions is None else {"permissions": dict(self.permissions)}


def require_signed(path: Path, context: Context) -> None:
    """Raise :class:`RyeError` if the file is not what a trusted key signed."""
    (report,) = verify_paths([path], context)
    if report.error is not None:
        raise report.error


def space_of(name: SpaceName, context: Context) -> Space:
    """The space that the items are written to."""
    root = context.user_space if name == "user" else context.project_path
    return Space(name=name, root=root / ".ai")


def fault_of(tool: ToolDefinition, server: str) -> str:
    """Why a tool cannot be an item; empty if it can."""
    try:
        check_item_id(f"{server}/{tool.name}")
    except RyeError as error:
        return error.reason
    if Path(tool.name).suffix in (".yaml", ".yml", ".py", ".js", ".sh"):
        return "its name ends like a file"
    try:
        compile_once(dict(tool.schema))
    except SchemaError as error:
        return f"its schema is invalid: {error.reason}"
    return ""


def _project_files(command: tuple[str, ...], context: Context) -> Iterator[str]:
    """The files of the project that the command names; they run, so they are pinned."""
    project = os.path.realpath(context.project_path)
    for word in command:
        path = os.path.realpath(os.path.join(project, word))  # noqa: PTH118 - a word, not a path
        if Path(path).is_file() and path.startswith(f"{project}{os.sep}"):
            yield os.path.relpath(path, project)


def _yaml(content: Mapping[str, Any]) -> bytes:
    import yaml

    text = yaml.safe_dump(dict(content), sort_keys=False, allow_unicode=True, width=100)
    return text.encode()
