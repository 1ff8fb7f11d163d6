"""Text that a person typed for a parameter, read by the type that the schema gives it.

It is read as JSON if the schema allows the type of that JSON value, otherwise as text if the schema
allows text. A parameter without a type is text.
"""

from __future__ import annotations

import json
import math

from rye.catalogue.parameter_types import ParameterType, SchemaParameters, json_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_NO_VALUE: Any = object()
_NAMES = {
    "boolean": "true or false",
    "null": "null",
    "integer": "an integer",
    "array": "a JSON array",
    "object": "a JSON object",
}


def read_texts(key: str, texts: list[str], known: SchemaParameters) -> Any:
    """Return the value of a parameter that is given by one text, or by several for an array.

    Raises ``ValueError`` that says what is expected, without repeating a text.
    """
    kind = known.type_of(key)
    if len(texts) == 1:
        value = _read(texts[0], kind)
        if value is not _NO_VALUE:
            return value
    if "array" in kind.types:
        return [_read_element(text, known.type_in(kind.items)) for text in texts]
    if len(texts) > 1:
        raise ValueError("given more than once")
    raise ValueError(f"expected {_expected(kind)}")


def _read_element(text: str, kind: ParameterType) -> Any:
    value = _read(text, kind)
    if value is _NO_VALUE:
        raise ValueError(f"expected {_expected(kind)} for each")
    return value


def _read(text: str, kind: ParameterType) -> Any:
    """Return the value, or ``_NO_VALUE`` if the type allows neither the JSON value nor text."""
    if text in kind.choices or not kind.types or kind.types == {"string"}:
        return text
    value = _from_json(text)
    if value is not _NO_VALUE and _fits(value, kind):
        whole = isinstance(value, float) and value.is_integer() and "number" not in kind.types
        return int(value) if whole else value
    return text if "string" in kind.types else _NO_VALUE


def _fits(value: Any, kind: ParameterType) -> bool:
    name = json_type(value)
    if name == "integer" or (isinstance(value, float) and value.is_integer()):
        return bool(kind.types & {"integer", "number"})
    # Quotes that the caller typed are part of the text.
    return name in kind.types and name != "string"


def _from_json(text: str) -> Any:
    lowered = text.lower()
    try:
        return json.loads(
            # True and False, as in Python, are accepted too.
            lowered if lowered in ("true", "false") else text,
            parse_constant=refuse_constant,
            parse_float=_finite,
        )
    except (ValueError, RecursionError):
        return _NO_VALUE


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else refuse_constant(text)


def _expected(kind: ParameterType) -> str:
    """Describe the type for an error message; the given value, maybe a secret, is not repeated."""
    if kind.choices:
        return "one of " + ", ".join(json.dumps(choice) for choice in kind.choices)
    return " or ".join([_NAMES.get(name, f"a {name}") for name in sorted(kind.types)])


def refuse_constant(name: str) -> Any:
    """Refuse NaN and infinities, which Python reads but JSON does not have."""
    raise ValueError(f"{name} is not JSON")
