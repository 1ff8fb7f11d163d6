"""validate_parameters with a cached schema, against the `jsonschema` package."""

import importlib
import timeit
from collections.abc import Callable
from typing import Any

from lilux.schemas.schema_validator import SchemaValidator, validate_parameters

from bench.table import Report, Row

LIMIT_US = 10.0
ROUNDS, CALLS = 7, 2000

SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "command": {"type": "string", "description": "Command to run"},
        "args": {"type": "array", "items": {"type": "string"}},
        "env": {"type": "object", "description": "Environment variables"},
        "cwd": {"type": "string", "description": "Working directory"},
        "timeout": {"type": "integer", "default": 300},
    },
    "required": ["command"],
}
PARAMETERS = {"command": "echo", "args": ["a", "b"], "env": {"K": "v"}, "timeout": 5}


def microseconds(call: Callable[[], object]) -> float:
    """Return the duration of one call, the best of several rounds."""
    return min(timeit.repeat(call, number=CALLS, repeat=ROUNDS)) / CALLS * 1e6


def measure() -> Report:
    handle = SchemaValidator().compile(SCHEMA)
    assert validate_parameters(PARAMETERS, SCHEMA).valid
    ours = microseconds(lambda: validate_parameters(PARAMETERS, SCHEMA))
    with_handle = microseconds(lambda: handle.validate(PARAMETERS))
    peer = importlib.import_module("jsonschema").Draft202012Validator(SCHEMA)
    theirs = microseconds(lambda: peer.is_valid(PARAMETERS))
    detail = f"compiled once {with_handle:.2f} µs, jsonschema {theirs:.0f} µs"
    what = "validate_parameters, cached schema"
    return Report([Row(what, ours, LIMIT_US, unit=" µs", detail=detail)])
