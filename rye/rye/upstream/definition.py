"""What a server says about one of its tools, and whether that is still what the user pinned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

from lilux.primitives.integrity import compute_integrity
from lilux.record import Record

_FIELDS = ("name", "title", "description", "inputSchema", "outputSchema", "annotations")
_HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
}
_MAX_LINES = 40


class ToolDefinition(Record, frozen=True):
    """The part of a tool's definition that a model reads or that a call depends on."""

    fields: Mapping[str, Any]

    @classmethod
    def of(cls, tool: Mapping[str, Any]) -> ToolDefinition:
        """From an element of the answer to ``tools/list``."""
        return cls({key: tool[key] for key in _FIELDS if tool.get(key) is not None})

    @property
    def name(self) -> str:
        """The name by which the server knows the tool."""
        return str(self.fields.get("name", ""))

    @property
    def description(self) -> str:
        """What the server says that it does."""
        return str(self.fields.get("description") or self.fields.get("title") or "")

    @property
    def schema(self) -> Mapping[str, Any]:
        """The schema of the arguments."""
        schema = self.fields.get("inputSchema")
        return schema if isinstance(schema, Mapping) else {"type": "object"}

    @property
    def annotations(self) -> dict[str, bool]:
        """The hints, by Rye's names."""
        given = self.fields.get("annotations")
        given = given if isinstance(given, Mapping) else {}
        return {
            ours: given[theirs]
            for theirs, ours in _HINTS.items()
            if isinstance(given.get(theirs), bool)
        }

    @property
    def digest(self) -> str:
        """SHA-256 of the definition."""
        return compute_integrity(dict(self.fields))


def differences(
    description: str, schema: Mapping[str, Any] | None, offered: ToolDefinition | None
) -> Iterator[str]:
    """The lines that changed since an item with this description and schema was signed."""
    if offered is None:
        yield "the server does not offer it any more"
        return
    signed = {**offered.fields, "description": description, "inputSchema": schema}
    before, after = _lines(ToolDefinition.of(signed)), _lines(offered)
    changed = [
        line
        for line in unified_diff(before, after, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    yield from changed[:_MAX_LINES]
    if len(changed) > _MAX_LINES:
        yield f"… and {len(changed) - _MAX_LINES} more lines"


def _lines(definition: ToolDefinition) -> list[str]:
    return json.dumps(definition.fields, indent=1, sort_keys=True, ensure_ascii=False).split("\n")
