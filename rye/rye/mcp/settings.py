"""What the user asked of the server, read once from the command line."""

from __future__ import annotations

from typing import Final, NamedTuple

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vscode")
"""Those whose configuration can be printed."""


class ServerSettings(NamedTuple):
    """Which tools are offered, and how."""

    all_tools: bool = False
    """Every tool under its own name, in place of those that the project features."""
    allow_sign: bool = False
    """Also ``sign``, with which an agent can approve its own code."""
    only: tuple[str, ...] = ()
    """Globs of the ids that clients may see and run; none at all is no limit."""

    def offers(self, item_id: str) -> bool:
        """Whether clients may see and run this item. Takes a full id: a short one names another."""
        from fnmatch import fnmatchcase

        return not self.only or any(fnmatchcase(item_id, glob) for glob in self.only)
