"""The types that a JSON Schema allows for each parameter of a tool.

They decide how the text of a command line is read. Nothing is validated here: the executor
validates the parameters against the whole schema before the tool runs.
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
    """Types and choices; ``None`` if the schema does not restrict them."""

_BRANCHES = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("then", "else")
# Real schemas do not nest alternatives deeper than this.
_MAX_DEPTH = 16


class ParameterType(Record, frozen=True, kw_only=True):
    """The values that one parameter may have."""

    types: frozenset[str]
    """Names of JSON types; empty if the schema does not restrict them."""
    choices: tuple[Any, ...]
    """The values of ``enum`` and ``const``, if no others are allowed."""
    items: Schema
    """The schema of the elements, for an array."""
    description: str


class SchemaParameters:
    """The parameters that a tool's schema describes."""

    def __init__(self, schema: Schema | None) -> None:
        self._root: Schema = schema if isinstance(schema, Mapping) else {}
        self._parts = self._all_parts(self._root)

    def names(self) -> tuple[str, ...]:
        """The names in ``properties``, in the order of the schema."""
        found: dict[str, None] = {}
        for part in self._parts:
            properties = part.get("properties")
            if isinstance(properties, Mapping):
                found.update(dict.fromkeys(map(str, properties)))
        return tuple(found)

    def accepts(self, name: str) -> bool:
        """True if the schema allows the parameter.

        A schema that names parameters and has no ``additionalProperties`` allows no others here,
        unlike in JSON Schema: an unknown name is most likely a typing mistake.
        """
        if name in self.names() or self._pattern_schema(name) is not None:
            return True
        others = [
            part["additionalProperties"] for part in self._parts if "additionalProperties" in part
        ]
        if others:
            return all(other is not False for other in others)
        return not self.names()

    def type_of(self, name: str) -> ParameterType:
        """Return the type of a parameter; an unknown one is not restricted."""
        for part in self._parts:
            properties = part.get("properties")
            if isinstance(properties, Mapping) and name in properties:
                return self.type_in(properties[name])
        by_pattern = self._pattern_schema(name)
        if by_pattern is not None:
            return self.type_in(by_pattern)
        for part in self._parts:
            if "additionalProperties" in part:
                return self.type_in(part["additionalProperties"])
        return self.type_in({})

    def type_in(self, schema: Any) -> ParameterType:
        """Return the type that a schema allows; references and alternatives are followed."""
        types, choices = self._allowed(schema, {})
        items: Any = {}
        description = ""
        for part in self._all_parts(schema):
            items = items or part.get("items")
            description = description or str(part.get("description") or "")
        return ParameterType(
            types=types or frozenset(),
            choices=tuple(choices or ()),
            items=items if isinstance(items, Mapping) else {},
            description=description,
        )

    def _allowed(self, schema: Any, known: dict[int, Limits], depth: int = 0) -> Limits:
        """``known`` contains the schemas that were visited, so that each is visited once even if
        it refers to itself."""
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
        """The schema and all its subschemas, each once."""
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

    def _pattern_schema(self, name: str) -> Any:
        for part in self._parts:
            patterns = part.get("patternProperties")
            for pattern, schema in patterns.items() if isinstance(patterns, Mapping) else ():
                try:
                    if re.search(pattern, name):
                        return schema
                except re.error:  # valid in another dialect; the validation decides
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
        types = frozenset(map(json_type, choices))
    return types, choices


def json_type(value: Any) -> str:
    """Return the name of a value's JSON type."""
    if isinstance(value, bool):
        return "boolean"
    kinds = {str: "string", int: "integer", float: "number", list: "array", dict: "object"}
    return "null" if value is None else kinds.get(type(value), "object")


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []
