"""Tools as agent frameworks want them described: names, schemas, hints.

An id has slashes, which no framework takes in a name. MCP gets dots in their place, the others two
underscores. An id that cannot be spelled so, or not without doubt, bears a hash at its end.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal, get_args

from rye.catalogue.entry import CatalogueEntry, Summary

Format = Literal["mcp", "openai", "anthropic"]
FORMATS: tuple[Format, ...] = get_args(Format)

_MAX_MCP_NAME = 128
_MAX_FUNCTION_NAME = 64
_HASH_DIGITS = 8
_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}
# Neither takes these at the top of a schema; the executor holds the call to them all the same.
_NOT_AT_THE_TOP = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")


def mcp_name(item_id: str) -> str:
    """``rye/bash/bash`` → ``rye.bash.bash``; of letters, digits and ``._-``, at most 128."""
    name = item_id.replace("/", ".")
    if len(name) <= _MAX_MCP_NAME and re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return name
    return _hashed(name, item_id, _MAX_MCP_NAME)


def function_name(item_id: str) -> str:
    """``rye/bash/bash`` → ``rye__bash__bash``; of letters, digits and ``_-``, at most 64.

    A name without a hash at its end leads back to the id by its double underscores.
    """
    name = item_id.replace("/", "__")
    return name if _is_reversible(item_id, name) else _hashed(name, item_id, _MAX_FUNCTION_NAME)


def by_mcp_name(entries: Iterable[CatalogueEntry]) -> dict[str, CatalogueEntry]:
    """The entries by their MCP names. Those that would share one all get a hash instead."""
    found: dict[str, list[CatalogueEntry]] = {}
    for entry in entries:
        found.setdefault(mcp_name(entry.item_id), []).append(entry)
    named = {}
    for name, sharing in found.items():
        if len(sharing) == 1:
            named[name] = sharing[0]
        else:
            named |= {_hashed(name, one.item_id, _MAX_MCP_NAME): one for one in sharing}
    return named


def collisions(
    entries: Iterable[CatalogueEntry] | Iterable[Summary],
) -> tuple[tuple[str, ...], ...]:
    """The groups of ids that would share an MCP name."""
    found: dict[str, list[str]] = {}
    for entry in entries:
        found.setdefault(mcp_name(entry.item_id), []).append(entry.item_id)
    return tuple([tuple(ids) for ids in found.values() if len(ids) > 1])


def input_schema(entry: CatalogueEntry) -> dict[str, Any]:
    """Its schema as that of an object, which parameters always are."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema.update(entry.schema or {})
    schema["type"] = "object"
    return schema


def definition(entry: CatalogueEntry, format: Format, *, name: str = "") -> dict[str, Any]:  # noqa: A002 - what callers call it
    """The definition as JSON. ``name`` takes the place of the one that the id has by itself.

    Raises ``ValueError`` for a format that is not known.
    """
    if format == "mcp":
        return {
            "name": name or mcp_name(entry.item_id),
            "description": entry.description,
            "inputSchema": input_schema(entry),
            "annotations": _hints(entry.annotations),
        }
    if format == "openai":
        function = _function(entry, name)
        return {"type": "function", "function": {**function, "parameters": _portable(entry)}}
    if format == "anthropic":
        return {**_function(entry, name), "input_schema": _portable(entry)}
    raise ValueError(f"unknown format {format!r}; known are {', '.join(FORMATS)}")


def definitions(entries: Iterable[CatalogueEntry], format: Format) -> list[dict[str, Any]]:  # noqa: A002 - as above
    """The definitions of all, each with a name of its own."""
    if format == "mcp":
        named = by_mcp_name(entries)
        return [definition(entry, format, name=name) for name, entry in named.items()]
    return [definition(entry, format) for entry in entries]


def _function(entry: CatalogueEntry, name: str) -> dict[str, Any]:
    name = name or function_name(entry.item_id)
    description = entry.description
    if name.replace("__", "/") != entry.item_id:
        description = f"{description} (rye: {entry.item_id})".lstrip()
    return {"name": name, "description": description}


def _hints(annotations: Mapping[str, Any]) -> dict[str, bool]:
    return {
        hint: annotations[name]
        for name, hint in _HINTS.items()
        if isinstance(annotations.get(name), bool)
    }


def _portable(entry: CatalogueEntry) -> dict[str, Any]:
    schema = input_schema(entry)
    return {key: value for key, value in schema.items() if key not in _NOT_AT_THE_TOP}


def _is_reversible(item_id: str, name: str) -> bool:
    return (
        len(name) <= _MAX_FUNCTION_NAME
        and re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
        and "__" not in item_id
        and "_/" not in item_id
        and "/_" not in item_id
    )


def _hashed(name: str, item_id: str, room: int) -> str:
    """Stable, and different for ids that differ."""
    plain = re.sub(
        r"[^A-Za-z0-9_-]" if room == _MAX_FUNCTION_NAME else r"[^A-Za-z0-9._-]", "_", name
    )
    digest = sha256(item_id.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{plain[: room - _HASH_DIGITS - 1]}-{digest}"
