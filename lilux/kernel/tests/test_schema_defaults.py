"""Defaults of a schema, filled into parameters."""

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lilux.primitives.errors import SchemaError
from lilux.schemas.schema_validator import validate_parameters, with_defaults

SECRET = "hunter2-do-not-print"

DEFAULTS: dict[str, Any] = {
    "$defs": {"retry": {"properties": {"max": {"default": 3}}, "default": {"kind": "linear"}}},
    "properties": {
        "timeout": {"type": "integer", "default": 300},
        "env": {"properties": {"MODE": {"default": "exact"}}},
        "made": {"default": {}, "properties": {"inner": {"default": [1]}}},
        "retry": {"$ref": "#/$defs/retry"},
        "jobs": {"items": {"properties": {"n": {"default": None}}}},
        "plain": {"type": "string"},
    },
    "allOf": [{"properties": {"from_all_of": {"default": True}}}],
    "anyOf": [{"properties": {"not_this": {"default": 1}}}, True],
}


def test_defaults_are_filled_at_every_level() -> None:
    parameters = {"env": {}, "jobs": [{}, {"n": 1}], "timeout": 5}
    assert with_defaults(parameters, DEFAULTS) == {
        "env": {"MODE": "exact"},
        "jobs": [{"n": None}, {"n": 1}],
        "timeout": 5,
        "made": {"inner": [1]},
        "retry": {"kind": "linear", "max": 3},
        "from_all_of": True,
    }


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("a b", "#/$defs/a%20b"),
        ("\u00e9", "#/%24defs/%C3%A9"),
        ("a/b", "#/$defs/a%7E1b"),
        ("a~b", "#/$defs/a~0b"),
        ("100%", "#/$defs/100%25"),
    ],
)
def test_defaults_behind_an_encoded_reference_are_filled(name: str, reference: str) -> None:
    schema = {
        "$defs": {name: {"type": "integer", "default": 5}},
        "properties": {"n": {"$ref": reference}},
        "required": ["n"],
    }
    result = validate_parameters({}, schema, fill_defaults=True)
    assert (result.valid, result.parameters) == (True, {"n": 5})
    assert not validate_parameters({"n": "x"}, schema).valid


def test_a_missing_object_without_a_default_is_not_created() -> None:
    assert "env" not in with_defaults({}, DEFAULTS)


def test_filling_defaults_changes_neither_the_input_nor_the_schema() -> None:
    parameters: dict[str, Any] = {"env": {}, "jobs": [{}]}
    before, schema_before = copy.deepcopy(parameters), copy.deepcopy(DEFAULTS)
    filled = with_defaults(parameters, DEFAULTS)
    filled["made"]["inner"].append(2)
    filled["jobs"][0]["n"] = 9
    assert parameters == before
    assert schema_before == DEFAULTS
    assert with_defaults({}, True) == {}
    assert with_defaults(parameters, {}) is not parameters


def test_a_default_can_satisfy_a_required_property() -> None:
    schema = {"required": ["a"], "properties": {"a": {"default": 1, "type": "integer"}}}
    assert not validate_parameters({}, schema).valid
    result = validate_parameters({}, schema, fill_defaults=True)
    assert (result.valid, result.parameters) == (True, {"a": 1})
    result = validate_parameters({"a": SECRET}, schema, fill_defaults=True)
    assert result.errors == ("parameters.a: expected integer, got string",)
    assert SECRET not in repr(result)


def test_a_default_that_contains_itself_is_an_error() -> None:
    endless = {"properties": {"a": {"$ref": "#", "default": {}}}}
    with pytest.raises(SchemaError) as caught:
        validate_parameters({}, endless, fill_defaults=True)
    assert str(caught.value) == (
        "the defaults of the schema are nested deeper than 128 levels; "
        "break the reference from a default to itself"
    )
    loop = {"$defs": {"a": {"$ref": "#/$defs/b"}, "b": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}
    assert with_defaults({"x": {}}, loop) == {"x": {}}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["timeout", "env", "made", "jobs", "x"]), inner, max_size=4
        )
    ),
    max_leaves=10,
)


@given(parameters=st.dictionaries(st.sampled_from(["timeout", "env", "jobs", "x"]), JSON))
def test_filling_defaults_keeps_given_values_and_is_idempotent(parameters: dict[str, Any]) -> None:
    before = copy.deepcopy(parameters)
    filled = with_defaults(parameters, DEFAULTS)
    assert parameters == before
    assert filled.keys() >= parameters.keys()
    assert with_defaults(filled, DEFAULTS) == filled
