"""An item as an element of a chain: its file, its metadata and where it was found."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from lilux.record import Record, field

from rye.items.permissions import Permissions, permissions_from_json, permissions_to_json
from rye.spaces.model import Resolution, SpaceName

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

ANY_CHILD = "*"
"""The key of version constraints that apply to every child."""


class Metadata(Record, frozen=True, kw_only=True):
    """The declarations of a file, whatever its language. Do not change the mappings."""

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
    """Item id or :data:`ANY_CHILD` → ``min_version`` and ``max_version``, both inclusive."""
    pins: tuple[str, ...] = ()
    """Globs of files below the project that run with the item and are pinned, not signed."""
    examples: tuple[Mapping[str, Any], ...] = ()
    """Example calls: ``params``, and optionally ``expect``, which ``rye test`` compares."""
    files: tuple[str, ...] = ()
    """Globs of data beside the item, which the tool reads and a signed list covers."""
    annotations: Mapping[str, Any] = field(default_factory=dict)
    """Hints for agents: ``read_only``, ``destructive``, ``idempotent``, ``open_world``."""
    stdin: bool = False
    """A tool reads the stdin of its caller; a runtime passes it on. See ``run/stdin.py``."""
    needs_user: bool = False
    """A tool asks the user, and does not run where nobody can be asked. See ``run/channel.py``."""
    permissions: Permissions | None = None
    """``None`` means that the tool is not confined."""
    warm: bool | None = None
    """Of a runtime: its program can be prepared for many calls. Of a tool: false if it cannot."""


class ItemFile(Record, frozen=True, kw_only=True):
    """A file that was read once: hash, signature and metadata all come from these bytes."""

    path: Path
    content: bytes = field(repr=False)
    place: str = ""
    """The path of the opened file without symbolic links; empty if it was not read here."""


class ChainElement(Record, frozen=True, kw_only=True):
    """One element of a chain, as it was when its file was read."""

    item_id: str
    path: Path | None
    """``None`` for a primitive without a file."""
    space: SpaceName
    """The name of the space; ``resolution.space`` has its folder and its bundle."""
    metadata: Metadata
    integrity: str = ""
    """SHA-256 of the file without its signature line; empty for a primitive without a file."""
    signer: str = ""
    """Fingerprint of the key that signed the file; empty for a primitive without a file."""
    resolution: Resolution

    @property
    def executor_id(self) -> str | None:
        """The id of the next element; ``None`` for a primitive."""
        return self.metadata.executor_id

    @property
    def version(self) -> str:
        """The declared version; ``0.0.0`` if the file declares none."""
        return self.metadata.version or "0.0.0"


def metadata_to_json(metadata: Metadata) -> dict[str, Any]:
    """All fields as JSON values, for the disk cache."""
    values = {name: getattr(metadata, name) for name in _METADATA_FIELDS}
    for name in _LISTS:
        values[name] = None if values[name] is None else list(values[name])
    return {**values, "permissions": permissions_to_json(metadata.permissions)}


def metadata_from_json(values: Any) -> Metadata | None:
    """The inverse of :func:`metadata_to_json`; ``None`` if ``values`` do not have its fields."""
    if not isinstance(values, dict) or values.keys() != _METADATA_FIELDS:
        return None
    for name in _LISTS:
        values[name] = None if values[name] is None else tuple(values[name])
    values["permissions"] = permissions_from_json(values["permissions"])
    return Metadata(**values)


_METADATA_FIELDS = frozenset(Metadata.__annotations__)
_LISTS = ("inputs", "outputs", "pins", "files", "examples")
