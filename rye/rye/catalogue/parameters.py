"""The parameters of a tool as a person reads them: one after the other, nested ones by a path."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from rye.catalogue.reference import referred

_MAX_DEPTH = 6
_MAX_LOOKS = 5000
_MAX_CHOICES = 12
_LIMITS = (
    ("exclusiveMinimum", "above {}"),
    ("exclusiveMaximum", "below {}"),
    ("multipleOf", "a multiple of {}"),
    ("maxLength", "at most {} characters"),
    ("pattern", "like {}"),
    ("maxItems", "at most {} of them"),
)
_NOTHING: Any = object()


class Parameter(NamedTuple):
    """One parameter, or one field of a parameter that is an object."""

    name: str
    """``retry.max_attempts`` for a field, ``edits[].path`` for one of each element."""
    kind: str
    """``string``, ``list of string``, ``one of "a", "b"``, with its limits."""
    required: bool
    default: str
    """As JSON; empty if there is none."""
    description: str


def parameters_of(schema: Mapping[str, Any] | None) -> tuple[Parameter, ...]:
    """Every parameter of the schema, those that are required first.

    Of an object that has itself as a field, the fields are told once.
    """
    if schema is None:
        return ()
    view = SchemaView(schema)
    return tuple(_fields(view.resolved(schema), view, "", ()))


class SchemaView:
    """A schema whose parts are looked at one by one.

    A few lines can refer to each other so that they stand for more than could ever be read; of such
    a schema, what is looked at last is empty.
    """

    def __init__(self, root: Mapping[str, Any]) -> None:
        self._root = root
        self._looks_left = _MAX_LOOKS

    def resolved(self, part: Any, depth: int = 0) -> Mapping[str, Any]:
        """A part of the schema with its reference followed and the first of its variants taken."""
        self._looks_left -= 1
        if not isinstance(part, Mapping) or depth > _MAX_DEPTH or self._looks_left < 0:
            return {}
        shape = dict(part)
        target = referred(shape.pop("$ref", None), self._root)
        if target is not None:
            shape = {**self.resolved(target, depth + 1), **shape}
        variants = shape.get("allOf")
        for variant in variants if isinstance(variants, list) else ():
            shape = _merged(shape, self.resolved(variant, depth + 1))
        for key in ("anyOf", "oneOf"):
            variants = shape.get(key)
            if isinstance(variants, list) and variants and "type" not in shape:
                shape = _merged(shape, self.resolved(variants[0], depth + 1))
        return shape


def _merged(left: Mapping[str, Any], right: Mapping[str, Any]) -> dict[str, Any]:
    merged = {**right, **left}
    if isinstance(left.get("properties"), Mapping) and isinstance(right.get("properties"), Mapping):
        merged["properties"] = {**right["properties"], **left["properties"]}
    if isinstance(left.get("required"), list) and isinstance(right.get("required"), list):
        merged["required"] = [*left["required"], *right["required"]]
    return merged


def _fields(
    shape: Mapping[str, Any], view: SchemaView, prefix: str, above: tuple[Any, ...]
) -> Iterator[Parameter]:
    properties = shape.get("properties")
    if not isinstance(properties, Mapping) or len(above) > _MAX_DEPTH:
        return
    if any(properties is each for each in above):
        return
    needed = shape.get("required")
    required = needed if isinstance(needed, list) else []
    for name in sorted(properties, key=lambda each: each not in required):
        part = view.resolved(properties[name])
        full = f"{prefix}{name}"
        default = part.get("default", _NOTHING)
        yield Parameter(
            name=full,
            kind=_kind(properties[name], view),
            required=name in required,
            default="" if default is _NOTHING else _json(default),
            description=_text(part.get("description")) or _text(part.get("title")),
        )
        within = (*above, properties)
        yield from _fields(part, view, f"{full}.", within)
        yield from _fields(view.resolved(part.get("items")), view, f"{full}[].", within)


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
