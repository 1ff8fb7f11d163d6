"""The packages that only the MCP server needs."""

from __future__ import annotations

from importlib.util import find_spec

from rye.errors import RyeError

_PACKAGES = ("mcp", "watchfiles")


def require_extra() -> None:
    """Raises ``RyeError`` with the command that installs what is missing. Imports nothing."""
    for package in _PACKAGES:
        if find_spec(package) is None:
            raise RyeError(
                f"the MCP server needs the package {package!r}, which is not installed",
                hint="run `pip install 'rye[mcp]'`",
            )
