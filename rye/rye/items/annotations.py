"""A type annotation as JSON Schema. The annotation is parsed and never evaluated."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import Any

_MAX_DEPTH = 8
_MAX_CHOICES = 100

_ARRAYS = (
    *("list", "List", "tuple", "Tuple", "set", "Set", "frozenset", "FrozenSet", "AbstractSet"),
    *("Sequence", "MutableSequence", "Iterable", "Collection"),
)
_PLAIN = {
    "str": "string",
    "int": "integer",
    "float": "number",
    "bool": "boolean",
    "None": "null",
    "NoneType": "null",
    "Path": "string",
    **dict.fromkeys(_ARRAYS, "array"),
    **dict.fromkeys(("dict", "Dict", "Mapping", "MutableMapping"), "object"),
}
_NULL = {"type": "null"}
# The type inside says what a caller passes.
_WRAPPERS = frozenset({"Annotated", "Final", "Required", "NotRequired"})

Schema = dict[str, Any]


class Annotations:
    """Reads the annotations of one module. ``aliases`` are its plain assignments at the top."""

    def __init__(self, aliases: Mapping[str, ast.expr]) -> None:
        self._aliases = aliases

    def schema(self, node: ast.expr | None, depth: int = 0) -> Schema:
        """The schema of an annotation; empty, which allows anything, if it is not understood."""
        if node is None or depth > _MAX_DEPTH:
            return {}
        if isinstance(node, ast.Constant):
            return self._constant(node, depth)
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
            return either([self.schema(one, depth + 1) for one in (node.left, node.right)])
        if isinstance(node, ast.Subscript):
            return self._subscripted(node, depth)
        name = last_name(node)
        if name in _PLAIN:
            return {"type": _PLAIN[name]}
        return self.schema(self._aliases.get(name), depth + 1)

    def _constant(self, node: ast.Constant, depth: int) -> Schema:
        if node.value is None:
            return dict(_NULL)
        if not isinstance(node.value, str):
            return {}
        try:
            inner = ast.parse(node.value.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return {}
        return self.schema(inner, depth + 1)

    def _subscripted(self, node: ast.Subscript, depth: int) -> Schema:
        name = last_name(node.value)
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if name == "Literal":
            return _choices(parts)
        if name in ("Optional", "Union"):
            null = [_NULL] if name == "Optional" else []
            return either([*[self.schema(one, depth + 1) for one in parts], *null])
        if name in _WRAPPERS:
            described = description_in(parts[1:])
            inner = self.schema(parts[0], depth + 1)
            return {**inner, "description": described} if described else inner
        return self._container(name, parts, depth)

    def _container(self, name: str, parts: Sequence[ast.expr], depth: int) -> Schema:
        kind = _PLAIN.get(name)
        if kind not in ("array", "object"):
            return {}
        key, at = ("items", 0) if kind == "array" else ("additionalProperties", 1)
        known = at < len(parts) and not _is_mixed(name, parts)
        inner = self.schema(parts[at], depth + 1) if known else {}
        return {"type": kind, key: inner} if inner else {"type": kind}


def last_name(node: ast.expr) -> str:
    """``Literal`` of ``typing.Literal``; empty if the node is not a dotted name."""
    if isinstance(node, ast.Attribute):
        return node.attr
    return node.id if isinstance(node, ast.Name) else ""


def either(schemas: Sequence[Schema]) -> Schema:
    """A schema for any of ``schemas``."""
    flat: list[Schema] = []
    for one in schemas:
        flat += one["anyOf"] if set(one) == {"anyOf"} else [one]
    if not all(flat):
        return {}  # one of them allows anything
    if all(set(one) == {"type"} for one in flat):
        kinds = [one["type"] for one in flat]
        names = list(dict.fromkeys([k for kind in kinds for k in _listed(kind)]))
        return {"type": names[0] if len(names) == 1 else names}
    return {"anyOf": flat}


def description_in(parts: Sequence[ast.expr]) -> str:
    """The text in the metadata of ``Annotated``: a string, ``Doc("…")``, or ``help="…"``."""
    for part in parts:
        if isinstance(part, ast.Constant) and isinstance(part.value, str):
            return " ".join(part.value.split())
        if isinstance(part, ast.Call):
            named = {one.arg: one.value for one in part.keywords}
            first = part.args[:1] if last_name(part.func) == "Doc" else []
            texts = [*first, named.get("help"), named.get("description")]
            for text in texts:
                if isinstance(text, ast.Constant) and isinstance(text.value, str):
                    return " ".join(text.value.split())
    return ""


def _listed(kind: Any) -> list[Any]:
    return list(kind) if isinstance(kind, list) else [kind]


def _is_mixed(name: str, parts: Sequence[ast.expr]) -> bool:
    """True for a tuple with a type for each place."""
    if name not in ("tuple", "Tuple"):
        return False
    dots = isinstance(parts[-1], ast.Constant) and parts[-1].value is Ellipsis
    return len(parts) > 1 and not dots


def _choices(parts: Sequence[ast.expr]) -> Schema:
    values = [part.value for part in parts if isinstance(part, ast.Constant)]
    plain = [one for one in values if one is None or isinstance(one, str | int | bool)]
    if len(plain) != len(parts) or len(plain) > _MAX_CHOICES:
        return {}
    kinds = {_KINDS[type(one)] for one in plain}
    if len(kinds) == 1:
        return {"type": kinds.pop(), "enum": plain}
    return {"enum": plain}


_KINDS = {str: "string", int: "integer", bool: "boolean", type(None): "null"}
