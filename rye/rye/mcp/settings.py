"""The options of the server, read once from the command line."""

from __future__ import annotations

from typing import Final, NamedTuple

CLIENTS: Final = ("claude-code", "claude-desktop", "cursor", "vscode")
"""The clients for which ``--print-config`` prints a configuration."""


class ServerSettings(NamedTuple):
    """Which tools the server offers, and how it lists them."""

    all_tools: bool = False
    """List every tool under its own name instead of only the featured ones."""
    allow_sign: bool = False
    """Offer the ``sign`` tool, with which an agent can approve its own code."""
    only: tuple[str, ...] = ()
    """Globs of the item ids that clients may see and run; empty means no limit."""

    confined: bool = False
    """Offer only tools that declare permissions."""

    receipts: bool = False
    """Sign a receipt of every call."""

    ask: tuple[str, ...] = ()
    """Globs of the tools about which the user is asked before each call."""
    allow: tuple[str, ...] = ()
    """Globs of the tools that run without asking, whatever the user's config says."""
    deny: tuple[str, ...] = ()
    """Globs of the tools that agents may not run."""

    max_calls: int | None = None
    """How many calls run at once; as many again wait. ``None`` means no limit."""
    log: str | None = None
    """A file that gets one line for each call."""

    @property
    def restricted(self) -> bool:
        """True if clients may not see and run every item."""
        return bool(self.only) or self.confined

    def offers(self, item_id: str, *, confined: bool) -> bool:
        """Return True if clients may see and run this item.

        Takes a full id: the globs do not match short ids.
        """
        from fnmatch import fnmatchcase

        if self.confined and not confined:
            return False
        return not self.only or any(fnmatchcase(item_id, glob) for glob in self.only)
