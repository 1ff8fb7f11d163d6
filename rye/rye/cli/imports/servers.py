"""Which MCP server is meant: a command, a URL, or an entry of a client's ``mcp.json``."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from lilux.files.bounded_read import FileTooLargeError, read_bounded
from lilux.record import Record

from rye.errors import ParameterError

_MAX_BYTES = 1024 * 1024
_SECTIONS = ("mcpServers", "servers")


class Server(Record, frozen=True):
    """How to reach a server. Values of variables are never kept, only their names."""

    name: str
    command: tuple[str, ...] = ()
    url: str = ""
    variables: tuple[str, ...] = ()
    has_headers: bool = False
    """The client's config has headers for it, which are not kept."""

    @property
    def shown(self) -> str:
        """The command or the URL, for a person."""
        import shlex

        return self.url or shlex.join(self.command)


def servers_in(path: Path, names: Sequence[str]) -> list[Server]:
    """The servers of a client's config, or those of ``names``. Raises :class:`ParameterError`."""
    try:
        content = json.loads(read_bounded(str(path), _MAX_BYTES))
    except (OSError, ValueError, FileTooLargeError) as error:
        raise _invalid(path, f"cannot be read ({type(error).__name__})") from None
    sections = [content.get(key) for key in _SECTIONS] if isinstance(content, Mapping) else []
    found = next((one for one in sections if isinstance(one, Mapping)), None)
    if found is None:
        raise _invalid(path, "has no object mcpServers or servers")
    missing = [name for name in names if name not in found]
    if missing:
        raise _invalid(path, f"has no server {missing[0]!r}; it has {', '.join(found)}")
    return [_server(name, found[name], path) for name in names or found]


def _server(name: str, entry: Any, path: Path) -> Server:
    entry = entry if isinstance(entry, Mapping) else {}
    variables = entry.get("env")
    names = tuple(map(str, variables)) if isinstance(variables, Mapping) else ()
    command, url = entry.get("command"), entry.get("url")
    if isinstance(command, str) and command:
        arguments = entry.get("args") or []
        if isinstance(arguments, list) and all(isinstance(one, str) for one in arguments):
            return Server(name, (command, *arguments), variables=names)
    elif isinstance(url, str) and url:
        return Server(name, url=url, variables=names, has_headers=bool(entry.get("headers")))
    raise _invalid(path, f"the server {name!r} has no command with args, and no url")


def _invalid(path: Path, fault: str) -> ParameterError:
    return ParameterError(f"invalid {path}", [fault], hint="pass the mcp.json of a client")
