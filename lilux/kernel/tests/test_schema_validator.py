"""Validation: messages without values, parameters without a JSON form, the cache."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from typing import Any

import pytest
from lilux.schemas.schema_validator import (
    SchemaValidator,
    ValidationResult,
    validate_parameters,
)

SECRET = "hunter2-do-not-print"


def errors_of(parameters: Any, schema: Any) -> tuple[str, ...]:
    result = validate_parameters(parameters, schema)
    assert not result.valid
    return result.errors


@pytest.mark.parametrize(
    ("rule", "value", "expected"),
    [
        ({"type": "integer"}, SECRET, "expected integer, got string"),
        ({"type": ["integer", "null"]}, [SECRET], "expected integer or null, got array"),
        ({"type": "string"}, True, "expected string, got boolean"),
        ({"type": "string"}, 1.5, "expected string, got number"),
        ({"enum": ["a", 2]}, SECRET, 'expected one of "a", 2'),
        (
            {"enum": list(range(12))},
            SECRET,
            "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9 and 2 more",
        ),
        ({"const": {"a": None}}, SECRET, 'expected {"a": null}'),
        ({"pattern": "^x"}, SECRET, 'expected a match of the pattern "^x"'),
        ({"maxLength": 3}, SECRET, "expected at most 3 characters"),
        ({"minLength": 99}, SECRET, "expected at least 99 characters"),
        ({"minimum": 3}, 2, "expected a number of at least 3"),
        ({"maximum": 3}, 4, "expected a number of at most 3"),
        ({"exclusiveMinimum": 3}, 3, "expected a number above 3"),
        ({"exclusiveMaximum": 3}, 3, "expected a number below 3"),
        ({"multipleOf": 2}, 3, "expected a multiple of 2"),
        ({"minItems": 2}, [SECRET], "expected at least 2 items"),
        ({"maxItems": 0}, [SECRET], "expected at most 0 items"),
        ({"uniqueItems": True}, [SECRET, SECRET], "expected items that differ from each other"),
        (
            {"contains": {"type": "null"}},
            [SECRET],
            "expected more or fewer items that match 'contains'",
        ),
        ({"minProperties": 2}, {"a": SECRET}, "expected at least 2 properties"),
        ({"maxProperties": 0}, {"a": SECRET}, "expected at most 0 properties"),
        ({"required": ["z"]}, {"a": SECRET}, "missing property 'z'"),
        (
            {"properties": {"a": {}}, "additionalProperties": False},
            {"comand": SECRET},
            "unexpected property 'comand'",
        ),
        ({"additionalProperties": False}, {"x": SECRET}, "no properties are allowed here"),
        ({"unevaluatedProperties": False}, {"x": SECRET}, "unexpected property 'x'"),
        ({"unevaluatedItems": False}, [SECRET, SECRET], "2 unexpected items"),
        (
            {"propertyNames": {"maxLength": 2}},
            {SECRET: 1},
            "a property name is refused: expected at most 2 characters",
        ),
        ({"not": {"type": "string"}}, SECRET, 'expected anything but {"type": "string"}'),
        (False, SECRET, "nothing is allowed here"),
        (
            {"anyOf": [{"type": "integer"}, {"maxLength": 2}]},
            SECRET,
            (
                "none of the 2 alternatives matches "
                "(expected integer, got string; or expected at most 2 characters)"
            ),
        ),
        (
            {"oneOf": [{"type": "string"}, {"minLength": 2}]},
            SECRET,
            "expected exactly one of the alternatives to match, but several do",
        ),
    ],
)
def test_an_error_names_the_path_and_the_expectation_but_not_the_value(
    rule: Any, value: Any, expected: str
) -> None:
    result = validate_parameters({"key": value}, {"properties": {"key": rule}})
    assert result == ValidationResult(False, (f"parameters.key: {expected}",))
    assert SECRET not in repr(result)


def test_a_path_starts_at_the_outermost_step() -> None:
    schema = {
        "properties": {
            "jobs": {"items": {"properties": {"env": {"additionalProperties": {"type": "string"}}}}}
        }
    }
    parameters = {"jobs": [{}, {"env": {"A KEY": 3}}]}
    assert errors_of(parameters, schema) == (
        'parameters.jobs[1].env["A KEY"]: expected string, got integer',
    )


def test_all_errors_are_reported_up_to_a_limit() -> None:
    schema = {"items": {"type": "string"}}
    assert len(errors_of([1, 2, 3], schema)) == 3
    many = errors_of(list(range(1000)), schema)
    assert len(many) == 51
    assert many[-1] == "parameters: more than 50 errors; the rest is omitted"


def test_valid_parameters_pass() -> None:
    schema = {"type": "object", "required": ["a"], "properties": {"a": {"type": "integer"}}}
    assert validate_parameters({"a": 1}, schema) == ValidationResult(True, ())
    assert validate_parameters({"a": 2**80}, schema).valid
    assert validate_parameters({"anything": (1, 2.5, None)}, True).valid


def circular() -> dict[str, Any]:
    circle: dict[str, Any] = {}
    circle["twice"] = [circle, circle]
    return circle


def nested(levels: int) -> dict[str, Any]:
    outer: dict[str, Any] = {}
    inner = outer
    for _ in range(levels):
        inner["k"] = {}
        inner = inner["k"]
    return outer


@pytest.mark.parametrize(
    ("parameters", "expected"),
    [
        ({"a": object()}, "parameters.a: a value of type object has no JSON form"),
        ({"a": [b"raw"]}, "parameters.a[0]: a value of type bytes has no JSON form"),
        ({"a": {1: 2}}, "parameters.a: keys must be strings, got int"),
        ({"a": float("nan")}, "parameters.a: NaN and infinities have no JSON form"),
        ({"a": [float("-inf")]}, "parameters.a[0]: NaN and infinities have no JSON form"),
        ({"a": Decimal("NaN")}, "parameters.a: NaN and infinities have no JSON form"),
        ({"a": Decimal("sNaN")}, "parameters.a: NaN and infinities have no JSON form"),
        ({1, 2}, "parameters: a value of type set has no JSON form"),
        ("\ud800", "parameters: a string with a lone surrogate has no JSON form"),
        ({"a": "\ud800"}, "parameters.a: a string with a lone surrogate has no JSON form"),
        ({"a": ["\ude00x"]}, "parameters.a[0]: a string with a lone surrogate has no JSON form"),
        (
            {"a": {"\ud800": 1}},
            "parameters.a: the key '\\ud800': a string with a lone surrogate has no JSON form",
        ),
    ],
)
def test_parameters_without_a_json_form_are_a_failed_result(parameters: Any, expected: str) -> None:
    assert errors_of(parameters, {"type": "object"}) == (expected,)
    assert validate_parameters(parameters, True, fill_defaults=True).errors == (expected,)


@pytest.mark.parametrize("parameters", [nested(200_000), circular()], ids=["deep", "circular"])
def test_deep_or_circular_parameters_do_not_overflow_the_stack(parameters: Any) -> None:
    schema = {"properties": {"k": {"$ref": "#"}}, "additionalProperties": {"$ref": "#"}}
    (message,) = errors_of(parameters, schema)
    assert message.endswith(": nested deeper than 128 levels, or circular")


def test_parameters_of_a_hundred_levels_are_validated() -> None:
    schema = {"type": "object", "properties": {"k": {"$ref": "#"}}}
    parameters = nested(100)
    assert validate_parameters(parameters, schema).valid


def test_a_schema_changed_in_place_is_compiled_again() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"const": 1}}}
    assert validate_parameters({"a": 1}, schema).valid
    schema["properties"]["a"]["const"] = True  # equal to 1 in Python, and not in JSON
    assert not validate_parameters({"a": 1}, schema).valid
    assert validate_parameters({"a": True}, schema).valid


def test_a_compiled_schema_does_not_follow_later_changes() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    handle = SchemaValidator().compile(schema)
    schema["type"] = "string"
    assert handle.validate(1).valid
    assert handle.validate("x").errors == ("parameters: expected integer, got string",)


def test_the_cache_compares_content_and_is_bounded() -> None:
    validator = SchemaValidator(max_schemas=2)
    first = validator.compile({"minimum": 1})
    assert validator.compile({"minimum": 1}) is first
    second = validator.compile({"minimum": 2})
    assert validator.compile({"minimum": 1}) is first
    validator.compile({"minimum": 3})
    assert validator.compile({"minimum": 1}) is first
    assert validator.compile({"minimum": 2}) is not second
    with pytest.raises(ValueError, match=r"^max_schemas is 0; pass 1 or more$"):
        SchemaValidator(max_schemas=0)


def test_threads_share_a_validator() -> None:
    validator = SchemaValidator(max_schemas=3)

    def check(number: int) -> bool:
        schema = {"minimum": number % 7}
        return (
            validator.validate_parameters(number % 7, schema).valid
            and not validator.validate_parameters(number % 7 - 1, schema).valid
        )

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(check, range(2000)))


def test_importing_the_validator_loads_no_compiled_library() -> None:
    code = (
        "import sys, lilux.schemas.schema_validator;"
        "print([m for m in ('jsonschema_rs', 'msgspec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
