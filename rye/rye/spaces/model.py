"""The records that describe a space and where an id was found."""

from __future__ import annotations

from pathlib import Path

from lilux.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Literal

    SpaceName = Literal["project", "user", "system"]
else:
    SpaceName = str

PRECEDENCE: dict[SpaceName, int] = {"project": 3, "user": 2, "system": 1}


class Space(Record, frozen=True, kw_only=True):
    """A root of items. Every bundle is a space with the name ``system``."""

    name: SpaceName
    root: Path
    """The ``.ai`` folder itself."""
    bundle: str = ""
    """In the system space: the package that contains it; ``rye`` is Rye's own."""

    @property
    def tools(self) -> Path:
        """The folder that ids are relative to."""
        return self.root / "tools"

    @property
    def precedence(self) -> int:
        """3 for the project, 2 for the user, 1 for the system."""
        return PRECEDENCE[self.name]


class Resolution(Record, frozen=True, kw_only=True):
    """Where an id was found, and which paths of higher precedence were missing."""

    item_id: str
    """The full id, even if a short one was asked for."""
    path: Path | None
    """``None`` for a primitive that has no file."""
    space: Space
    absent: tuple[Path, ...] = ()
    """Missing paths, without an extension, of higher precedence or in another bundle. If a file
    appears at one of them, the answer changes. ``**`` stands for any folders."""
    asked: str = ""
    """The id as it was asked for; empty if that is ``item_id``."""
    from_space: Space | None = None
    """The space of the item that asked."""
