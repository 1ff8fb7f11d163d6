"""Messages of validation errors: the path and the expectation, never the value.

The messages of the library quote the value, which may be a secret; these are made from the failed
rule only. They contain names of properties, so that a misspelt one can be found.
"""

from __future__ import annotations

import json
from collections.abc import Callable

from lilux.schemas.json_shape import format_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from jsonschema_rs import ValidationError

_MAX_LISTED = 10
_MAX_NESTED = 3

_Words = Callable[[dict[str, "Any"]], str]


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def _listed(values: list[Any], to_text: Callable[[Any], str] = _to_json) -> str:
    shown = ", ".join(to_text(value) for value in values[:_MAX_LISTED])
    more = len(values) - _MAX_LISTED
    return shown if more <= 0 else f"{shown} and {more} more"


def _limit(before: str, after: str = "") -> _Words:
    return lambda rule: f"expected {before} {_to_json(rule['limit'])}{after}"


_WORDS: dict[str, _Words] = {
    "additionalItems": lambda rule: f"expected at most {rule['limit']} items",
    "additionalProperties": lambda rule: f"unexpected property {_listed(rule['unexpected'], repr)}",
    "const": lambda rule: f"expected {_to_json(rule['expected_value'])}",
    "contains": lambda _rule: "expected more or fewer items that match 'contains'",
    "contentEncoding": lambda rule: f"expected {rule['content_encoding']} encoding",
    "contentMediaType": lambda rule: f"expected content of type {rule['content_media_type']}",
    "enum": lambda rule: f"expected one of {_listed(rule['options'])}",
    "exclusiveMaximum": _limit("a number below"),
    "exclusiveMinimum": _limit("a number above"),
    "falseSchema": lambda _rule: "nothing is allowed here",
    "format": lambda rule: f"expected the format {_to_json(rule['format'])}",
    "maxItems": _limit("at most", " items"),
    "maximum": _limit("a number of at most"),
    "maxLength": _limit("at most", " characters"),
    "maxProperties": _limit("at most", " properties"),
    "minItems": _limit("at least", " items"),
    "minimum": _limit("a number of at least"),
    "minLength": _limit("at least", " characters"),
    "minProperties": _limit("at least", " properties"),
    "multipleOf": lambda rule: f"expected a multiple of {_to_json(rule['multiple_of'])}",
    "not": lambda rule: f"expected anything but {_to_json(rule['schema'])}",
    "pattern": lambda rule: f"expected a match of the pattern {_to_json(rule['pattern'])}",
    "required": lambda rule: f"missing property {rule['property']!r}",
    "unevaluatedItems": lambda rule: f"{len(rule['unexpected'])} unexpected items",
    "unevaluatedProperties": lambda rule: (
        f"unexpected property {_listed(rule['unexpected'], repr)}"
    ),
    "uniqueItems": lambda _rule: "expected items that differ from each other",
}


def describe(error: ValidationError, root: str) -> str:
    """Return ``root.path: expectation``, without the value."""
    return f"{format_path(root, error.instance_path)}: {expectation(error)}"


def expectation(error: ValidationError, nested: int = _MAX_NESTED) -> str:
    """Describe the failed rule; alternatives are described to a depth of ``nested``."""
    keyword, rule = error.kind.name, error.kind.as_dict()
    if keyword == "type":
        return f"expected {' or '.join(sorted(rule['types']))}, got {json_type(error.instance)}"
    if keyword == "falseSchema" and error.schema_path[-1:] == ["additionalProperties"]:
        return "no properties are allowed here"
    if keyword == "propertyNames":
        return f"a property name is refused: {expectation(rule['error'], nested)}"
    if keyword in {"anyOf", "oneOf"}:
        return _alternatives(rule["context"], nested)
    words = _WORDS.get(keyword)
    return f"the rule {keyword!r} is not met" if words is None else words(rule)


def _alternatives(context: list[list[ValidationError]], nested: int) -> str:
    failed = [branch for branch in context if branch]
    if len(failed) < len(context):
        return "expected exactly one of the alternatives to match, but several do"
    if not nested:
        return f"none of the {len(failed)} alternatives matches"
    described = "; or ".join(expectation(branch[0], nested - 1) for branch in failed[:_MAX_LISTED])
    return f"none of the {len(failed)} alternatives matches ({described})"


def json_type(value: Any) -> str:
    """Return the JSON Schema name of the type of ``value``."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return "boolean"
    if isinstance(value, str):
        return "string"
    if isinstance(value, int):
        return "integer"
    if isinstance(value, dict):
        return "object"
    return "array" if isinstance(value, list | tuple) else "number"
