"""What the plain check accepts, the validator accepts too; everything else is left to it."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from lilux.primitives.errors import SchemaError
from lilux.schemas.plain import surely_valid
from lilux.schemas.schema_validator import validate_parameters

NAMES = st.sampled_from(["a", "b", "é"])
NUMBERS = st.integers(-3, 3) | st.sampled_from([0.5, -0.0, 1.0, 1e300, 2**53 + 1, 10**30, -(2**63)])
SCALARS = st.none() | st.booleans() | NUMBERS | st.text("aé\U0001f600", max_size=3)
VALUES = st.recursive(
    SCALARS, lambda each: st.lists(each, max_size=3) | st.dictionaries(NAMES, each), max_leaves=8
)
TYPES = st.sampled_from(
    ["object", "array", "string", "integer", "number", "boolean", "null", "text"]
)


def keywords(schemas: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": TYPES | st.lists(TYPES, max_size=3),
            "enum": st.lists(SCALARS, max_size=3),
            "minimum": NUMBERS,
            "maximum": NUMBERS,
            "exclusiveMinimum": NUMBERS,
            "exclusiveMaximum": NUMBERS,
            "minLength": st.integers(-1, 3) | st.booleans(),
            "maxItems": st.integers(-1, 3),
            "properties": st.dictionaries(NAMES, schemas, max_size=3),
            "required": st.lists(NAMES, max_size=2),
            "additionalProperties": schemas,
            "items": schemas,
            "description": st.just("text") | st.none(),
            "pattern": st.just("^a"),
            "format": st.just("email"),
        },
    )


SCHEMAS: st.SearchStrategy[Any] = st.recursive(st.booleans() | st.just({}), keywords, max_leaves=6)


def is_valid(value: Any, schema: Any) -> bool:
    try:
        return validate_parameters(value, schema).valid
    except SchemaError:
        return False


@settings(max_examples=400, deadline=None, derandomize=True)
@given(schema=SCHEMAS, value=VALUES)
def test_what_is_accepted_is_valid(schema: Any, value: Any) -> None:
    if surely_valid(value, schema):
        assert is_valid(value, schema)


@pytest.mark.parametrize(("schema", "value"), [({"enum": [1]}, True), ({"enum": [False]}, 0)])
def test_a_truth_value_is_not_a_number(schema: Any, value: Any) -> None:
    assert not surely_valid(value, schema)
    assert not is_valid(value, schema)


PERSON = {
    "type": "object",
    "properties": {
        "name": {"type": "string", "minLength": 1, "description": "Who."},
        "age": {"type": ["integer", "null"], "minimum": 0, "maximum": 150},
        "unit": {"enum": ["c", "f"], "default": "c"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2},
    },
    "required": ["name"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "value",
    [
        {"name": "Ada"},
        {"name": "Ada", "age": None, "unit": "f", "tags": ["x", "y"]},
        {"name": "Ada", "age": 36, "tags": []},
    ],
)
def test_a_plain_schema_is_decided_without_the_validator(value: Any) -> None:
    assert surely_valid(value, PERSON)


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"name": ""},
        {"name": "Ada", "age": True},
        {"name": "Ada", "age": 151},
        {"name": "Ada", "unit": "k"},
        {"name": "Ada", "tags": ["x", 1]},
        {"name": "Ada", "tags": ["x", "y", "z"]},
        {"name": "Ada", "other": 1},
        {"name": "\udc80"},
        "Ada",
    ],
)
def test_an_invalid_value_is_left_to_the_validator(value: Any) -> None:
    assert not surely_valid(value, PERSON)
    assert not is_valid(value, PERSON)


@pytest.mark.parametrize(
    "schema",
    [
        {"pattern": "^a"},
        {"$ref": "#/$defs/a"},
        {"anyOf": [{}]},
        {"$schema": "http://json-schema.org/draft-07/schema#"},
        {"properties": {"unused": {"type": "strin"}}},
        {"properties": {"unused": {"minimum": "1"}}},
        {"required": ["a", "a"]},
        {"type": []},
        {"minLength": True},
    ],
)
def test_an_unknown_or_invalid_schema_is_left_to_the_validator(schema: Any) -> None:
    assert not surely_valid({}, schema)
