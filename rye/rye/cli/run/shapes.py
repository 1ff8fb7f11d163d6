"""What a JSON Schema says of each parameter, as far as a command line needs it.

This does not validate: it finds the types that a text may be read as. What is given to the tool is
validated against the whole schema before it runs.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from lilux.record import Record

from rye.catalogue.schema import referenced

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Schema = Mapping[str, Any]
    Limits = tuple[frozenset[str] | None, list[Any] | None]
    """Types and choices; ``None`` where the schema does not limit them."""

_BRANCHES = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("then", "else")
# Nobody nests alternatives deeper than this.
_MAX_DEPTH = 16


class Shape(Record, frozen=True, kw_only=True):
    """What may be given for one parameter."""

    types: frozenset[str]
    """The names of JSON types; empty if the schema does not say."""
    choices: tuple[Any, ...]
    """The values of ``enum`` and ``const``, if nothing else is allowed."""
    items: Schema
    """Of an array: the schema of what it holds."""
    description: str


class Parameters:
    """The parameters that a tool's schema knows."""

    def __init__(self, schema: Schema | None) -> None:
        self._root: Schema = schema if isinstance(schema, Mapping) else {}
        self._parts = self._all_parts(self._root)

    def names(self) -> tuple[str, ...]:
        """Those that are named, in the order of the schema."""
        found: dict[str, None] = {}
        for part in self._parts:
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                found.update(dict.fromkeys(map(str, properties)))
        return tuple(found)

    def takes(self, name: str) -> bool:
        """Whether the schema means to allow it: a schema that names its parameters and says
        nothing of others is taken to be complete."""
        if name in self.names() or self._patterned(name) is not None:
            return True
        others = [part["additionalProperties"] for part in self._parts if _mentions_others(part)]
        if others:
            return all(other is not False for other in others)
        return not self.names()

    def shape(self, name: str) -> Shape:
        """What the schema says of one parameter; of an unknown one, nothing."""
        for part in self._parts:
            properties = part.get("properties")
            if isinstance(properties, Mapping) and name in properties:
                return self.shape_of(properties[name])
        patterned = self._patterned(name)
        if patterned is not None:
            return self.shape_of(patterned)
        for part in self._parts:
            if _mentions_others(part):
                return self.shape_of(part["additionalProperties"])
        return self.shape_of({})

    def shape_of(self, schema: Any) -> Shape:
        """What one schema allows, with its references and alternatives followed."""
        types, choices = self._allowed(schema, {})
        items: Any = {}
        description = ""
        for part in self._all_parts(schema):
            items = items or part.get("items")
            description = description or str(part.get("description") or "")
        return Shape(
            types=types or frozenset(),
            choices=tuple(choices or ()),
            items=items if isinstance(items, Mapping) else {},
            description=description,
        )

    def _allowed(self, schema: Any, known: dict[int, Limits], depth: int = 0) -> Limits:
        """``known`` has what was looked at before, so that a schema whose parts refer to each
        other, and to itself, is gone through once."""
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
            return None, None
        if id(schema) in known:
            return known[id(schema)]
        known[id(schema)] = None, None
        types, choices = _own_limits(schema)
        for other in (referenced(schema.get("$ref"), self._root), *_list(schema.get("allOf"))):
            other_types, other_choices = self._allowed(other, known, depth + 1)
            types = other_types if types is None else types & (other_types or types)
            choices = other_choices if choices is None else choices
        for key in ("anyOf", "oneOf"):
            branches = [self._allowed(each, known, depth + 1) for each in _list(schema.get(key))]
            if not branches:
                continue
            if all(found is not None for found, _ in branches):
                union = frozenset().union(*(found for found, _ in branches if found))
                types = union if types is None else types & union
            if choices is None and all(found is not None for _, found in branches):
                choices = [value for _, found in branches for value in found or ()]
        known[id(schema)] = types, choices
        return types, choices

    def _all_parts(self, schema: Any) -> list[Schema]:
        """The schema and all that it is composed of, each part once."""
        found: dict[int, Schema] = {}
        self._collect(schema, found, 0)
        return list(found.values())

    def _collect(self, schema: Any, found: dict[int, Schema], depth: int) -> None:
        if not isinstance(schema, Mapping) or depth > _MAX_DEPTH or id(schema) in found:
            return
        found[id(schema)] = schema
        self._collect(referenced(schema.get("$ref"), self._root), found, depth + 1)
        for key in _BRANCHES:
            for branch in _list(schema.get(key)):
                self._collect(branch, found, depth + 1)
        for key in _CONDITIONAL:
            self._collect(schema.get(key), found, depth + 1)

    def _patterned(self, name: str) -> Any:
        for part in self._parts:
            patterns = part.get("patternProperties")
            for pattern, schema in patterns.items() if isinstance(patterns, Mapping) else ():
                try:
                    if re.search(pattern, name):
                        return schema
                except re.error:  # legal in another dialect; the validation decides
                    return schema
        return None


def _own_limits(schema: Schema) -> tuple[frozenset[str] | None, list[Any] | None]:
    declared = schema.get("type")
    types: frozenset[str] | None = None
    if isinstance(declared, str):
        types = frozenset({declared})
    elif isinstance(declared, list):
        types = frozenset(map(str, declared))
    choices: list[Any] | None = None
    if "const" in schema:
        choices = [schema["const"]]
    elif isinstance(schema.get("enum"), list):
        choices = list(schema["enum"])
    if types is None and choices is not None:
        types = frozenset(map(type_name, choices))
    return types, choices


def type_name(value: Any) -> str:
    """The JSON type of a value."""
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return "null" if value is None else kinds.get(type(value), "object")


def _mentions_others(part: Schema) -> bool:
    return "additionalProperties" in part


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
