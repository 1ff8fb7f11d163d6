"""What a server says about one of its tools, and whether that is still what the user pinned."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import TYPE_CHECKING, Any

from lilux.primitives.integrity import compute_integrity
from lilux.record import Record

if TYPE_CHECKING:
    from rye.items.element import Metadata

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
    signed: Metadata, offered: ToolDefinition | None, limit: int = _MAX_LINES
) -> Iterator[str]:
    """The lines that changed since an item was signed, at most ``limit``."""
    if offered is None:
        yield "the server does not offer it any more"
        return
    known = _signed_definition(signed, offered)
    before, after = _lines(known), _lines(offered)
    changed = [
        line
        for line in unified_diff(before, after, lineterm="", n=0)
        if not line.startswith(("---", "+++", "@@"))
    ]
    if known.digest != dict(signed.config.get("mcp_tool") or {}).get("pinned"):
        # The item has only their digest.
        now = {key: offered.fields.get(key) for key in ("title", "outputSchema", "annotations")}
        text = json.dumps(now, sort_keys=True, ensure_ascii=False)
        changed.append(f"its title, its answers or its annotations have changed to {text}")
    yield from changed[:limit]
    if len(changed) > limit:
        yield f"… and {len(changed) - limit} more lines"


def _signed_definition(signed: Metadata, offered: ToolDefinition) -> ToolDefinition:
    """What the server said when the item was signed; as it is now where the item does not say it.

    Hints decide which rules of the user apply, so a changed one is a difference.
    """
    given = offered.fields.get("annotations")
    others = {key: one for key, one in dict(given or {}).items() if key not in _HINTS}
    hints = {
        theirs: signed.annotations[ours]
        for theirs, ours in _HINTS.items()
        if ours in signed.annotations
    }
    both = {**others, **hints}
    fields = {
        **offered.fields,
        "description": signed.description,
        "inputSchema": signed.config_schema,
        "annotations": both if both or given is not None else None,
    }
    return ToolDefinition.of(fields)


def _lines(definition: ToolDefinition) -> list[str]:
    return json.dumps(definition.fields, indent=1, sort_keys=True, ensure_ascii=False).split("\n")
