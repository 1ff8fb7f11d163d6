"""What the user asked of the server, read once from the command line."""

from __future__ import annotations

from typing import Final, NamedTuple

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vscode")
"""Those whose configuration can be printed."""


class ServerSettings(NamedTuple):
    """Which tools are offered beside ``search``, ``show`` and ``execute``."""

    all_tools: bool = False
    """Every tool under its own name, in place of those that the project features."""
    allow_sign: bool = False
    """Also ``sign``, with which an agent can approve its own code."""
