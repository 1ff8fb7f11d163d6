"""What the catalogue says of one item. Nothing here was verified, and nothing is run by it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

SpaceName = str

# What tools are built on: of use to who writes a tool, not to who runs one.
_FOUNDATIONS = frozenset({"primitive", "runtime", "library"})


class Summary(NamedTuple):
    """What a list needs of an item. The fields mean what they do in :class:`CatalogueEntry`."""

    item_id: str
    space: SpaceName
    bundle: str
    path: str
    version: str
    tool_type: str
    executor_id: str | None
    category: str
    description: str
    fault: str

    @property
    def is_tool(self) -> bool:
        """Whether it is something to run, and not a runtime, a primitive or a library."""
        return self.tool_type not in _FOUNDATIONS


class CatalogueEntry(NamedTuple):
    """All that an item says of itself to those who look for tools."""

    item_id: str
    space: SpaceName
    """``project``, ``user`` or ``system``."""
    bundle: str
    """For the system space: the package that brings the item."""
    path: str
    """Empty for a primitive that has no file."""
    version: str
    """As declared; ``0.0.0`` if not."""
    tool_type: str
    executor_id: str | None
    category: str
    description: str
    schema: Mapping[str, Any] | None
    """The JSON Schema of its parameters, if it declares one."""
    annotations: Mapping[str, Any]
    """Hints for agents: ``read_only``, ``destructive``, ``idempotent``, ``open_world``."""
    fault: str
    """Why the file could not be read, and what to do; empty if it could."""

    @property
    def is_tool(self) -> bool:
        """Whether it is something to run, and not a runtime, a primitive or a library."""
        return self.tool_type not in _FOUNDATIONS


def one_line(text: str) -> str:
    """A description as a list shows it: without line ends and double blanks."""
    return " ".join(text.split())
