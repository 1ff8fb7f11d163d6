"""What the second station hands on: an item as an element of a chain."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lilux.record import Record, field

from rye.spaces.model import Resolution, Space

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Metadata(Record, frozen=True, kw_only=True):
    """What a file declares, whatever its language. Mappings are not to be changed."""

    version: str = ""
    tool_type: str = ""
    executor_id: str | None = None
    category: str = ""
    description: str = ""
    config_schema: Mapping[str, Any] | None = None
    env_config: Mapping[str, Any] | None = None
    config: Mapping[str, Any] = field(default_factory=dict)
    anchor: Mapping[str, Any] | None = None
    verify_deps: Mapping[str, Any] | None = None
    inputs: tuple[str, ...] | None = None
    outputs: tuple[str, ...] | None = None
    child_constraints: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """Hints for agents: ``read_only``, ``destructive``, ``idempotent``, ``open_world``."""


class ItemFile(Record, frozen=True, kw_only=True):
    """A file that was read once: hash, signature and metadata all come from these bytes."""

    path: Path
    content: bytes = field(repr=False)
    place: str = ""
    """Where the file that was opened lay, without links; empty if it was not read here."""


class ChainElement(Record, frozen=True, kw_only=True):
    """One element of a chain, as it was when its file was read."""

    item_id: str
    path: Path | None
    space: Space
    metadata: Metadata
    integrity: str = ""
    """SHA-256 of the file without its signature line; empty for a primitive without a file."""
    signer: str = ""
    """Fingerprint of the key that vouches for it; empty for a primitive without a file."""
    resolution: Resolution

    @property
    def executor_id(self) -> str | None:
        """The next element's id; ``None`` for a primitive."""
        return self.metadata.executor_id

    @property
    def version(self) -> str:
        """As declared; ``0.0.0`` if not."""
        return self.metadata.version or "0.0.0"
