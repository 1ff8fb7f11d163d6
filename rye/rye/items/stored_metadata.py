"""Metadata as JSON and back, for the disk cache."""

from __future__ import annotations

from rye.items.element import Metadata

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_LISTS = ("inputs", "outputs")
_FIELDS = (
    "version", "tool_type", "executor_id", "category", "description", "config_schema",
    "env_config", "config", "anchor", "verify_deps", *_LISTS, "child_constraints", "annotations",
)  # fmt: skip


def metadata_to_json(metadata: Metadata) -> dict[str, Any]:
    """All fields; ``metadata_from_json`` gives an equal object."""
    values = {name: getattr(metadata, name) for name in _FIELDS}
    for name in _LISTS:
        values[name] = None if values[name] is None else list(values[name])
    return values


def metadata_from_json(values: Any) -> Metadata | None:
    """``None`` for what is no metadata."""
    if not isinstance(values, dict) or values.keys() != set(_FIELDS):
        return None
    for name in _LISTS:
        values[name] = None if values[name] is None else tuple(values[name])
    return Metadata(**values)
