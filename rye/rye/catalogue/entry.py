"""The records of the catalogue for one item. They are not verified, and not used to run it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

SpaceName = str

# Types of items that tools are built on; of interest to authors of tools, not to users.
_FOUNDATIONS = frozenset({"primitive", "runtime", "library"})


class Summary(NamedTuple):
    """The short record of an item, for lists. The fields are those of :class:`CatalogueEntry`."""

    item_id: str
    space: SpaceName
    bundle: str
    path: str
    version: str
    tool_type: str
    executor_id: str | None
    category: str
    description: str
    confined: bool
    fault: str

    @property
    def is_tool(self) -> bool:
        """True unless the item is a runtime, a primitive or a library."""
        return is_tool_type(self.tool_type)


class CatalogueEntry(NamedTuple):
    """Everything that an item declares about itself."""

    item_id: str
    space: SpaceName
    """``project``, ``user`` or ``system``."""
    bundle: str
    """The package that contains the item; only for the system space."""
    path: str
    """Empty for a primitive that has no file."""
    version: str
    """As declared, else ``0.0.0``."""
    tool_type: str
    executor_id: str | None
    category: str
    description: str
    confined: bool
    """True if the item declares permissions."""
    schema: Mapping[str, Any] | None
    """The JSON Schema of the parameters, if declared."""
    annotations: Mapping[str, Any]
    """Hints for agents: ``read_only``, ``destructive``, ``idempotent``, ``open_world``."""
    fault: str
    """Why the file cannot be read and what to do; empty if it can."""
    examples: Sequence[Mapping[str, Any]] = ()
    """Example calls: ``params``, and optionally ``expect``."""
    stdin: bool = False
    """True if the tool reads the stdin of `rye run`."""
    needs_user: bool = False
    """True if the tool does not run where nobody can be asked."""

    @property
    def is_tool(self) -> bool:
        """True unless the item is a runtime, a primitive or a library."""
        return is_tool_type(self.tool_type)


def one_line(text: str) -> str:
    """Return the text without line breaks and repeated spaces."""
    return " ".join(text.split())


def is_tool_type(tool_type: str) -> bool:
    """Return True unless the type is one that tools are built on."""
    return tool_type not in _FOUNDATIONS
