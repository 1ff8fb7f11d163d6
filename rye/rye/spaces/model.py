"""What the first station hands on."""

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
    """One root of items. Several bundles may bear the name ``system``."""

    name: SpaceName
    root: Path
    """The ``.ai`` folder itself."""
    bundle: str = ""
    """For the system space: the package that brings it; ``rye`` is our own."""

    @property
    def tools(self) -> Path:
        """The folder below which ids are paths."""
        return self.root / "tools"

    @property
    def precedence(self) -> int:
        """3 for the project, 2 for the user, 1 for the system."""
        return PRECEDENCE[self.name]


class Resolution(Record, frozen=True, kw_only=True):
    """Where an id was found, and where it was looked for in vain."""

    item_id: str
    """The full id, also if a short one was asked for."""
    path: Path | None
    """``None`` for a primitive that has no file."""
    space: Space
    absent: tuple[Path, ...] = ()
    """Paths, without an extension, of higher precedence (or in a bundle) that did not have it: were
    one to appear, the answer would be another. ``**`` in one stands for any folders."""
    asked: str = ""
    """The id as it was asked for; empty if that is ``item_id``."""
    from_space: Space | None = None
    """The space of the item that asked."""
