"""``key=value`` from a command line, read by the schema of the tool.

A text is read as JSON where the schema allows what it then is, and stays text where the schema
allows text. Nothing is guessed: of a parameter without a type it is always the text.
"""

from __future__ import annotations

import json
import math

from rye.cli.run.shapes import Parameters, Shape, type_name
from rye.errors import ParameterError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

_NO_VALUE: Any = object()
_ARTICLES = {"integer": "an integer", "array": "a JSON array", "object": "a JSON object"}
_EXAMPLES = {"boolean": "true or false", "null": "null"}


def parse_values(
    pairs: Sequence[str], schema: Mapping[str, Any] | None, *, item_id: str = "ITEM"
) -> dict[str, Any]:
    """The parameters that ``pairs`` give. Raises :class:`ParameterError` with every issue.

    A key that is given more than once makes an array, if the schema has one there. ``item_id`` is
    for the message.
    """
    parameters = Parameters(schema)
    given: dict[str, list[str]] = {}
    issues: list[str] = []
    for pair in pairs:
        key, equals, text = pair.partition("=")
        if not equals or not key:
            issues.append(f"{_shown(pair)} is not of the form key=value")
        else:
            given.setdefault(key, []).append(text)
    values: dict[str, Any] = {}
    for key, texts in given.items():
        if not parameters.takes(key):
            issues.append(_unknown(key, parameters.names()))
            continue
        try:
            values[key] = _read_all(key, texts, parameters)
        except ValueError as error:
            issues.append(f"{key}: {error}")
    if issues:
        raise ParameterError(
            f"wrong parameters for {item_id!r}",
            issues,
            hint=f"see `rye show {item_id}`, or pass them with --params",
        )
    return values


def _read_all(key: str, texts: list[str], parameters: Parameters) -> Any:
    shape = parameters.shape(key)
    if len(texts) == 1:
        value = _read(texts[0], shape)
        if value is not _NO_VALUE:
            return value
    if "array" in shape.types:
        return [_read_one(text, parameters.shape_of(shape.items)) for text in texts]
    if len(texts) > 1:
        raise ValueError("given more than once")
    raise ValueError(f"expected {_expected(shape)}")


def _read_one(text: str, shape: Shape) -> Any:
    value = _read(text, shape)
    if value is _NO_VALUE:
        raise ValueError(f"expected {_expected(shape)} for each")
    return value


def _read(text: str, shape: Shape) -> Any:
    """The value, or ``_NO_VALUE`` if the shape allows neither the text nor what it says."""
    if text in shape.choices or not shape.types or shape.types == {"string"}:
        return text
    value = _from_json(text)
    if value is not _NO_VALUE and _fits(value, shape):
        whole = isinstance(value, float) and value.is_integer() and "number" not in shape.types
        return int(value) if whole else value
    return text if "string" in shape.types else _NO_VALUE


def _fits(value: Any, shape: Shape) -> bool:
    kind = type_name(value)
    if kind == "integer" or (isinstance(value, float) and value.is_integer()):
        return bool(shape.types & {"integer", "number"})
    # Text that happens to stand in quotes is still the text that was given.
    return kind in shape.types and kind != "string"


def _from_json(text: str) -> Any:
    spelled = text.lower()
    try:
        return json.loads(
            # As Python spells them, which nobody means as anything else here.
            spelled if spelled in ("true", "false") else text,
            parse_constant=_refuse,
            parse_float=_finite,
        )
    except (ValueError, RecursionError):
        return _NO_VALUE


def _refuse(name: str) -> Any:
    raise ValueError(name)


def _finite(text: str) -> float:
    number = float(text)
    return number if math.isfinite(number) else _refuse(text)


def _expected(shape: Shape) -> str:
    """For the message: what the schema says, and never what was given."""
    if shape.choices:
        return "one of " + ", ".join(json.dumps(choice) for choice in shape.choices)
    kinds = [
        _EXAMPLES.get(kind) or _ARTICLES.get(kind, f"a {kind}") for kind in sorted(shape.types)
    ]
    return " or ".join(kinds)


def _unknown(key: str, names: tuple[str, ...]) -> str:
    from rye.suggestions import closest

    near = closest(key, names)
    if near:
        return f"unknown parameter {_shown(key)} (did you mean {near[0]!r}?)"
    known = ", ".join(names)
    return f"unknown parameter {_shown(key)}" + (f" (there are {known})" if known else "")


def _shown(text: str) -> str:
    """The beginning of an argument; what was meant as a value may follow."""
    return repr(text if len(text) <= 40 else f"{text[:39]}…")
