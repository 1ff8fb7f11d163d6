"""What a check found about one tool or one file of settings."""

from __future__ import annotations

from typing import NamedTuple


class Report(NamedTuple):
    """The findings, each a whole message that ends in what to do.

    An error keeps the tool from running, or is something that nobody can have meant.
    """

    item_id: str
    """The id of the tool, or the path of a file of settings."""
    errors: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @property
    def state(self) -> str:
        """``ok``, ``warning`` or ``error``."""
        return "error" if self.errors else "warning" if self.warnings else "ok"
