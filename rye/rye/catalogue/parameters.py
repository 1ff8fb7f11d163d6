"""The parameters of a tool for people to read: a flat list, nested ones with a path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rye.catalogue.schema import SchemaView

_MAX_DEPTH = 6
_MAX_CHOICES = 12
_LIMITS = (
    ("exclusiveMinimum", "above {}"),
    ("exclusiveMaximum", "below {}"),
    ("multipleOf", "a multiple of {}"),
    ("maxLength", "at most {} characters"),
    ("pattern", "matching {}"),
    ("maxItems", "at most {} of them"),
)
_MISSING: Any = object()


class Parameter(NamedTuple):
    """One parameter, or one field of a parameter that is an object."""

    name: str
    """``retry.max_attempts`` for a field, ``edits[].path`` for a field of list elements."""
    kind: str
    """For example ``string``, ``list of string`` or ``integer, 0 to 9``."""
    required: bool
    default: str
    """As JSON; empty if the schema gives none."""
    description: str


def parameters_of(schema: Mapping[str, Any] | None) -> tuple[Parameter, ...]:
    """Return every parameter of the schema, required ones first.

    The fields of an object that contains itself are listed once.
    """
    if schema is None:
        return ()
    view = SchemaView(schema)
    return tuple(_fields(view.resolved(schema), view, "", ()))


def _fields(
    shape: Mapping[str, Any], view: SchemaView, prefix: str, outer: tuple[Any, ...]
) -> Iterator[Parameter]:
    properties = shape.get("properties")
    if not isinstance(properties, Mapping) or len(outer) > _MAX_DEPTH:
        return
    if any(properties is each for each in outer):
        return
    needed = shape.get("required")
    required = needed if isinstance(needed, list) else []
    for name in sorted(properties, key=lambda each: each not in required):
        part = view.resolved(properties[name])
        full = f"{prefix}{name}"
        default = part.get("default", _MISSING)
        yield Parameter(
            name=full,
            kind=_kind(properties[name], view),
            required=name in required,
            default="" if default is _MISSING else _json(default),
            description=_text(part.get("description")) or _text(part.get("title")),
        )
        path = (*outer, properties)
        yield from _fields(part, view, f"{full}.", path)
        yield from _fields(view.resolved(part.get("items")), view, f"{full}[].", path)


def _kind(part: Any, view: SchemaView, depth: int = 0) -> str:
    shape = view.resolved(part)
    variants = shape.get("anyOf") or shape.get("oneOf")
    if isinstance(variants, list) and depth < _MAX_DEPTH:
        kinds = dict.fromkeys(_kind(variant, view, depth + 1) for variant in variants)
        return " or ".join(kinds)
    return ", ".join([_base(shape, view, depth), *_limits(shape)])


def _base(shape: Mapping[str, Any], view: SchemaView, depth: int) -> str:
    if "const" in shape:
        return _json(shape["const"])
    choices = shape.get("enum")
    if isinstance(choices, list) and choices:
        shown = ", ".join([_json(choice) for choice in choices[:_MAX_CHOICES]])
        more = len(choices) - _MAX_CHOICES
        return f"one of {shown}" + (f" and {more} more" if more > 0 else "")
    kind = shape.get("type")
    if isinstance(kind, list):
        return " or ".join([str(each) for each in kind])
    if kind == "array":
        items = shape.get("items")
        inner = _kind(items, view, depth + 1) if items and depth < _MAX_DEPTH else ""
        return f"list of {inner}" if inner and inner != "any" else "list"
    return str(kind) if kind else "object" if "properties" in shape else "any"


def _limits(shape: Mapping[str, Any]) -> Iterator[str]:
    low, high = shape.get("minimum"), shape.get("maximum")
    if low is not None and high is not None:
        yield f"{low} to {high}"
    elif low is not None or high is not None:
        yield f"at least {low}" if high is None else f"at most {high}"
    for key, text in _LIMITS:
        if key in shape:
            yield text.format(shape[key])
    if shape.get("minItems"):
        yield f"at least {shape['minItems']} of them"
    if shape.get("minLength", 0) not in (0, 1):
        yield f"at least {shape['minLength']} characters"
    if isinstance(shape.get("format"), str):
        yield shape["format"]


def _text(value: Any) -> str:
    return " ".join(value.split()) if isinstance(value, str) else ""


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
