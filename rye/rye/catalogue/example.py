"""Example parameters for a tool, generated from its schema."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from rye.catalogue.schema import SchemaView

_MAX_DEPTH = 6

_FORMATS = {
    "date": "2026-01-31",
    "date-time": "2026-01-31T12:00:00Z",
    "time": "12:00:00Z",
    "email": "ada@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "uri": "https://example.org",
    "url": "https://example.org",
    "uuid": "123e4567-e89b-12d3-a456-426614174000",
}
# Plausible values by parameter name; the first part found in the name is used.
_BY_NAME = (
    ("url", "https://example.org"),
    ("email", "ada@example.org"),
    ("command", "echo hello"),
    ("path", "README.md"),
    ("file", "README.md"),
    ("pattern", "TODO"),
    ("query", "hello"),
    ("name", "Ada"),
    ("date", "2026-01-31"),
    ("id", "42"),
)
_TEXT = "hello"
_MAX_TEXT = 1024


def example_parameters(schema: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return parameters that the schema accepts, as few as possible; ``None`` if none were found.

    Tries the required parameters first, then all of them. Each try is validated like a real call.
    """
    if schema is None:
        return {}
    from lilux.primitives.errors import SchemaError
    from lilux.schemas.schema_validator import SchemaValidator

    try:
        compiled = SchemaValidator().compile(dict(schema))
    except SchemaError:
        return None
    for everything in (False, True):
        view = SchemaView(schema)
        example = _object(view.resolved(schema), view, 0, everything=everything)
        if compiled.validate(example).valid:
            return example
    return None


def _object(
    shape: Mapping[str, Any], view: SchemaView, depth: int, *, everything: bool = False
) -> dict[str, Any]:
    properties = shape.get("properties")
    parts = properties if isinstance(properties, Mapping) else {}
    required = shape.get("required")
    wanted = [name for name in required or () if isinstance(name, str)]
    if everything:
        wanted += [name for name in parts if name not in wanted]
    return {name: _value(name, parts.get(name, {}), view, depth + 1) for name in wanted}


def _value(name: str, part: Any, view: SchemaView, depth: int) -> Any:
    shape = view.resolved(part)
    for key in ("const", "default"):
        if key in shape:
            return shape[key]
    for key in ("examples", "enum"):
        choices = shape.get(key)
        if isinstance(choices, list) and choices:
            return choices[0]
    return None if depth > _MAX_DEPTH else _generated(name, shape, view, depth)


def _generated(name: str, shape: Mapping[str, Any], view: SchemaView, depth: int) -> Any:
    match _kind(shape):
        case "object":
            value: Any = _object(shape, view, depth)
        case "array":
            value = _array(name, shape, view, depth)
        case "integer" | "number" as kind:
            value = _number(shape, whole=kind == "integer")
        case "boolean":
            value = True
        case "null":
            value = None
        case _:
            value = _text(name, shape)
    return value


def _kind(shape: Mapping[str, Any]) -> str:
    kind = shape.get("type")
    if isinstance(kind, list):
        kind = next((each for each in kind if each != "null"), "null")
    if isinstance(kind, str):
        return kind
    if "properties" in shape:
        return "object"
    return "array" if "items" in shape else "string"


def _array(name: str, shape: Mapping[str, Any], view: SchemaView, depth: int) -> list[Any]:
    minimum = shape.get("minItems", 1)
    count = min(max(minimum if isinstance(minimum, int) else 1, 1), 16)
    if shape.get("maxItems") == 0:
        return []
    values = [_value(name, shape.get("items", {}), view, depth + 1) for _ in range(count)]
    if shape.get("uniqueItems") and count > 1:
        choices = view.resolved(shape.get("items")).get("enum")
        if isinstance(choices, list):
            return choices[:count]
        return [f"{each}{at}" if isinstance(each, str) else at for at, each in enumerate(values, 1)]
    return values


def _number(shape: Mapping[str, Any], *, whole: bool) -> int | float:
    """Return the simplest number within the bounds: 1, one next to a bound, or their mean."""
    low, above = _bound(shape, "minimum"), _bound(shape, "exclusiveMinimum")
    high, below = _bound(shape, "maximum"), _bound(shape, "exclusiveMaximum")
    step = _bound(shape, "multipleOf") or (1 if whole else None)
    bounds = [each for each in (low, above, high, below) if each is not None]
    candidates = [1, *bounds, *[each + 1 for each in bounds], *[each - 1 for each in bounds]]
    candidates += [sum(bounds) / 2] if len(bounds) == 2 else []
    if step:
        candidates = [math.ceil(each / step) * step for each in candidates]
    for each in candidates:
        if (
            (low is None or each >= low)
            and (above is None or each > above)
            and (high is None or each <= high)
            and (below is None or each < below)
        ):
            return int(each) if float(each).is_integer() else each
    return 1


def _bound(shape: Mapping[str, Any], key: str) -> float | None:
    value = shape.get(key)
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def _text(name: str, shape: Mapping[str, Any]) -> str:
    named = next((text for part, text in _BY_NAME if part in name.lower()), _TEXT)
    text = _FORMATS.get(str(shape.get("format")), named)
    shortest, longest = shape.get("minLength"), shape.get("maxLength")
    if isinstance(shortest, int) and len(text) < shortest <= _MAX_TEXT:
        text = (text * shortest)[:shortest]
    return text[:longest] if isinstance(longest, int) else text
