"""Tool definitions for agent frameworks: names, schemas and hints.

No framework accepts the slashes of an id in a name. MCP names have dots instead, the others two
underscores. A name that would be invalid or ambiguous ends in a hash of the id.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from hashlib import sha256
from typing import Any, Literal, TypeVar, get_args

from rye.catalogue.entry import CatalogueEntry, Summary

Format = Literal["mcp", "openai", "anthropic"]
E = TypeVar("E", CatalogueEntry, Summary)
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
# OpenAI and Anthropic reject these at the top of a schema; the executor still validates them.
_NOT_AT_TOP_LEVEL = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else", "enum", "const")


def mcp_name(item_id: str) -> str:
    """Return the MCP name: ``rye/bash/bash`` → ``rye.bash.bash``.

    It has at most 128 letters, digits and ``._-``.
    """
    name = item_id.replace("/", ".")
    if len(name) <= _MAX_MCP_NAME and re.fullmatch(r"[A-Za-z0-9._-]+", name):
        return name
    return _hashed(name, item_id, _MAX_MCP_NAME)


def function_name(item_id: str) -> str:
    """Return the function name: ``rye/bash/bash`` → ``rye__bash__bash``.

    It has at most 64 letters, digits and ``_-``. In a name without a hash, replacing the double
    underscores with slashes gives the id.
    """
    name = item_id.replace("/", "__")
    return name if _is_reversible(item_id, name) else _hashed(name, item_id, _MAX_FUNCTION_NAME)


def by_mcp_name(entries: Iterable[CatalogueEntry]) -> dict[str, CatalogueEntry]:
    """Return the entries by MCP name. Entries that would share a name all get a hash."""
    named = {}
    for name, sharing in _grouped(entries).items():
        if len(sharing) == 1:
            named[name] = sharing[0]
        else:
            named |= {_hashed(name, one.item_id, _MAX_MCP_NAME): one for one in sharing}
    return named


def collisions(entries: Iterable[E]) -> tuple[tuple[str, ...], ...]:
    """Return the groups of ids that would share an MCP name."""
    groups = _grouped(entries).values()
    return tuple([tuple([one.item_id for one in group]) for group in groups if len(group) > 1])


def _grouped(entries: Iterable[E]) -> dict[str, list[E]]:
    groups: dict[str, list[E]] = {}
    for entry in entries:
        groups.setdefault(mcp_name(entry.item_id), []).append(entry)
    return groups


def input_schema(entry: CatalogueEntry) -> dict[str, Any]:
    """Return the schema of the parameters, always with the type object."""
    schema: dict[str, Any] = {"type": "object", "properties": {}}
    schema.update(entry.schema or {})
    schema["type"] = "object"
    return schema


def definition(entry: CatalogueEntry, format: Format, *, name: str = "") -> dict[str, Any]:  # noqa: A002 - the public name
    """Return the definition as JSON. ``name`` overrides the name derived from the id.

    Raises ``ValueError`` for an unknown format.
    """
    if format == "mcp":
        return {
            "name": name or mcp_name(entry.item_id),
            "description": entry.description,
            "inputSchema": {**_examples(entry), **input_schema(entry)},
            "annotations": _hints(entry.annotations),
        }
    if format == "openai":
        function = _function(entry, name)
        return {"type": "function", "function": {**function, "parameters": _portable(entry)}}
    if format == "anthropic":
        return {**_function(entry, name), "input_schema": _portable(entry)}
    raise ValueError(f"unknown format {format!r}; expected one of {', '.join(FORMATS)}")


def definitions(entries: Iterable[CatalogueEntry], format: Format) -> list[dict[str, Any]]:  # noqa: A002 - as above
    """Return the definitions of all entries, with unique names."""
    if format == "mcp":
        named = by_mcp_name(entries)
        return [definition(entry, format, name=name) for name, entry in named.items()]
    return [definition(entry, format) for entry in entries]


def _examples(entry: CatalogueEntry) -> dict[str, Any]:
    """The example calls of the author, as the keyword of JSON Schema."""
    params = [dict(one.get("params", {})) for one in entry.examples]
    return {"examples": params} if params else {}


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
    return {key: value for key, value in schema.items() if key not in _NOT_AT_TOP_LEVEL}


def _is_reversible(item_id: str, name: str) -> bool:
    return (
        len(name) <= _MAX_FUNCTION_NAME
        and re.fullmatch(r"[A-Za-z0-9_-]+", name) is not None
        and "__" not in item_id
        and "_/" not in item_id
        and "/_" not in item_id
    )


def _hashed(name: str, item_id: str, max_length: int) -> str:
    """Return a stable name that is unique to the id."""
    safe = re.sub(
        r"[^A-Za-z0-9_-]" if max_length == _MAX_FUNCTION_NAME else r"[^A-Za-z0-9._-]", "_", name
    )
    digest = sha256(item_id.encode()).hexdigest()[:_HASH_DIGITS]
    return f"{safe[: max_length - _HASH_DIGITS - 1]}-{digest}"
