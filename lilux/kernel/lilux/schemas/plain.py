"""Accept parameters by a plain JSON Schema, without loading the validator.

Loading jsonschema-rs takes longer than all other checks of a short program. This module knows the
keywords of most tools, and only the answer "valid": for everything else it says nothing, and the
validator decides and explains.
"""

from __future__ import annotations

from lilux.schemas.json_shape import MAX_DEPTH, json_fault

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_TYPES: Mapping[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "null": (type(None),),
}
_SCALARS = (str, int, float, bool, type(None))
# A keyword of the schema → the types of its value. Annotations do not decide about a value.
_KEYWORDS: Mapping[str, tuple[type, ...]] = {
    "type": (str, list),
    "enum": (list,),
    "minimum": (int, float),
    "maximum": (int, float),
    "exclusiveMinimum": (int, float),
    "exclusiveMaximum": (int, float),
    "minLength": (int,),
    "maxLength": (int,),
    "minItems": (int,),
    "maxItems": (int,),
    "properties": (dict,),
    "required": (list,),
    "additionalProperties": (bool, dict),
    "items": (bool, dict),
    "title": (str,),
    "description": (str,),
    "default": (*_SCALARS, list, dict),
    "examples": (list,),
    "deprecated": (bool,),
    "readOnly": (bool,),
    "writeOnly": (bool,),
}
_SIZES = ("minLength", "maxLength", "minItems", "maxItems")


def surely_valid(parameters: Any, schema: Any) -> bool:
    """True if the schema is plain and accepts ``parameters``; False says nothing."""
    return (
        json_fault(schema) is None
        and json_fault(parameters) is None
        and _is_plain(schema, MAX_DEPTH)
        and _accepts(schema, parameters)
    )


def _is_plain(schema: Any, room: int) -> bool:
    """True if every part of the schema is valid, and has known keywords only."""
    if type(schema) is bool:
        return True
    if (
        type(schema) is not dict
        or not room
        or not all(type(value) in _KEYWORDS.get(key, ()) for key, value in schema.items())
        or any(schema.get(size, 0) < 0 for size in _SIZES)
        or not all(type(value) in _SCALARS for value in schema.get("enum", ()))
    ):
        return False
    kinds, required = _kinds(schema), schema.get("required", [])
    if not (_are_names(kinds) and _are_names(required) and all(kind in _TYPES for kind in kinds)):
        return False
    parts = [*schema.get("properties", {}).values()]
    parts += [schema[key] for key in ("additionalProperties", "items") if key in schema]
    return ("type" not in schema or bool(kinds)) and all(_is_plain(one, room - 1) for one in parts)


def _are_names(values: list[Any]) -> bool:
    """True if they are different strings."""
    return all(type(value) is str for value in values) and len(set(values)) == len(values)


def _kinds(schema: dict[str, Any]) -> list[Any]:
    declared = schema.get("type", [])
    return [declared] if isinstance(declared, str) else declared


def _accepts(schema: Any, value: Any) -> bool:
    if type(schema) is bool:
        return schema
    if "type" in schema and not any(type(value) in _TYPES[kind] for kind in _kinds(schema)):
        return False
    # 1, 1.0 and True are equal in Python, but True is not a number in JSON.
    if "enum" in schema and not any(
        type(value) is type(one) and value == one for one in schema["enum"]
    ):
        return False
    check = _CHECKS.get(type(value))
    return check is not None and bool(check(schema, value))


def _accepts_object(schema: dict[str, Any], value: dict[str, Any]) -> bool:
    properties = schema.get("properties", {})
    others = schema.get("additionalProperties", True)
    return all(name in value for name in schema.get("required", ())) and all(
        _accepts(properties.get(name, others), child) for name, child in value.items()
    )


def _accepts_list(schema: dict[str, Any], value: list[Any]) -> bool:
    items = schema.get("items", True)
    return _has_size(schema, len(value), "Items") and all(_accepts(items, one) for one in value)


def _accepts_number(schema: dict[str, Any], value: float) -> bool:
    above, below = schema.get("exclusiveMinimum"), schema.get("exclusiveMaximum")
    return (
        schema.get("minimum", value) <= value <= schema.get("maximum", value)
        and (above is None or above < value)
        and (below is None or value < below)
    )


def _has_size(schema: dict[str, Any], size: int, kind: str) -> bool:
    return bool(schema.get(f"min{kind}", 0) <= size <= schema.get(f"max{kind}", size))


_CHECKS: Mapping[type, Callable[[dict[str, Any], Any], bool]] = {
    dict: _accepts_object,
    list: _accepts_list,
    str: lambda schema, value: _has_size(schema, len(value), "Length"),
    int: _accepts_number,
    float: _accepts_number,
    bool: lambda _schema, _value: True,
    type(None): lambda _schema, _value: True,
}
