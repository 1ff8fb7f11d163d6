"""validate_parameters with a cached schema, against the `jsonschema` package."""

import importlib
import timeit
from collections.abc import Callable
from typing import Any

from lilux.schemas.schema_validator import SchemaValidator, validate_parameters

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


def main() -> None:
    handle = SchemaValidator().compile(SCHEMA)
    assert validate_parameters(PARAMETERS, SCHEMA).valid
    ours = microseconds(lambda: validate_parameters(PARAMETERS, SCHEMA))
    report("validate_parameters, cached schema", f"{ours:8.2f} µs  (limit {LIMIT_US:.0f})")
    with_handle = microseconds(lambda: handle.validate(PARAMETERS))
    report("CompiledSchema.validate", f"{with_handle:8.2f} µs")
    try:
        peer = importlib.import_module("jsonschema").Draft202012Validator(SCHEMA)
    except ModuleNotFoundError:
        report("jsonschema", "not installed (it is in the dev group)")
    else:
        theirs = microseconds(lambda: peer.is_valid(PARAMETERS))
        report("jsonschema, cached validator", f"{theirs:8.2f} µs")
        report("jsonschema ÷ validate_parameters", f"{theirs / ours:8.1f} times")
    assert ours <= LIMIT_US, f"{ours:.2f} µs is above the limit {LIMIT_US} µs"


def report(what: str, figure: str) -> None:
    print(f"{what:36}{figure}")


if __name__ == "__main__":
    main()
