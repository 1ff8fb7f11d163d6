"""key=value on the command line, typed by the schema of the tool."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rye.catalogue.parameter_types import SchemaParameters
from rye.cli.run.parameters import parse_pairs
from rye.errors import ParameterError

SCHEMA: dict[str, Any] = {
    "type": "object",
    "$defs": {
        "level": {"enum": [1, 2, "auto"]},
        "tree": {"anyOf": [{"type": "string"}, {"$ref": "#/$defs/tree"}]},
    },
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "ratio": {"type": "number"},
        "flag": {"type": "boolean"},
        "nothing": {"type": "null"},
        "tags": {"type": "array", "items": {"type": "string"}},
        "sizes": {"type": "array", "items": {"type": "integer"}},
        "grid": {"type": "array", "items": {"type": "array"}},
        "options": {"type": "object"},
        "maybe": {"type": ["string", "null"]},
        "either": {"anyOf": [{"type": "string"}, {"type": "integer"}]},
        "one_of": {"oneOf": [{"type": "boolean"}, {"type": "array", "items": {}}]},
        "mixed": {"type": ["boolean", "object"]},
        "level": {"$ref": "#/$defs/level"},
        "limited": {"allOf": [{"type": ["integer", "string"]}, {"type": "integer"}]},
        "version": {"const": "1"},
        "untyped": {"description": "anything"},
        "round": {"$ref": "#/$defs/tree"},
        "elsewhere": {"$ref": "https://example.invalid/schema.json"},
    },
}


@pytest.mark.parametrize(
    ("pair", "value"),
    [
        ("text=3", "3"),
        ("text=true", "true"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("text=--help", "--help"),
        ("text=@file", "@file"),
        ('text="quoted"', '"quoted"'),
        ("text=${HOME} {x}", "${HOME} {x}"),
        ("count=3", 3),
        ("count=-3", -3),
        ("count=3.0", 3),
        ("ratio=3", 3),
        ("ratio=0.5", 0.5),
        ("ratio=2.0", 2.0),
        ("flag=true", True),
        ("flag=False", False),
        ("nothing=null", None),
        ("tags=a", ["a"]),
        ('tags=["a", "b"]', ["a", "b"]),
        ("tags=[a]", ["[a]"]),
        ("sizes=3", [3]),
        ("sizes=[]", []),
        ('options={"a": {"b": [1]}}', {"a": {"b": [1]}}),
        ("maybe=null", None),
        ("maybe=3", "3"),
        ("either=3", 3),
        ("either=three", "three"),
        ('either="3"', '"3"'),
        ("either=true", "true"),
        ("one_of=true", True),
        ("one_of=[1]", [1]),
        ("level=2", 2),
        ("level=auto", "auto"),
        ("limited=7", 7),
        ("version=1", "1"),
        ("untyped=3", "3"),
        ("round=3", "3"),
        ("elsewhere=3", "3"),
    ],
)
def test_a_value_has_the_type_of_the_schema(pair: str, value: object) -> None:
    read = parse_pairs([pair], SCHEMA)[pair.partition("=")[0]]
    assert read == value
    assert type(read) is type(value)


def test_a_repeated_key_makes_an_array_of_typed_items() -> None:
    assert parse_pairs(["tags=1", "text=x", "tags=b"], SCHEMA) == {"tags": ["1", "b"], "text": "x"}
    assert parse_pairs(["sizes=1", "sizes=2"], SCHEMA) == {"sizes": [1, 2]}
    assert parse_pairs(["grid=[1]", "grid=[2]"], SCHEMA) == {"grid": [[1], [2]]}


@pytest.mark.parametrize(
    ("pairs", "issue"),
    [
        (["count=many"], "count: expected an integer"),
        (["count=1.5"], "count: expected an integer"),
        (["count=true"], "count: expected an integer"),
        (["ratio=NaN"], "ratio: expected a number"),
        (["ratio=1e999"], "ratio: expected a number"),
        (["ratio="], "ratio: expected a number"),
        (["flag=yes"], "flag: expected true or false"),
        (["options=[]"], "options: expected a JSON object"),
        (["sizes=1", "sizes=x"], "sizes: expected an integer for each"),
        (["mixed=text"], "mixed: expected true or false or a JSON object"),
        (["text=a", "text=b"], "text: given more than once"),
        (["text"], "'text' is not of the form key=value"),
        (["=x"], "'=x' is not of the form key=value"),
        (["txet=a"], "unknown parameter 'txet' (did you mean 'text'?)"),
    ],
)
def test_an_invalid_value_is_reported_by_name(pairs: list[str], issue: str) -> None:
    with pytest.raises(ParameterError) as caught:
        parse_pairs(pairs, SCHEMA, item_id="tools/x")
    assert str(caught.value) == (
        f"invalid parameters for 'tools/x': {issue}; see `rye show tools/x`, or pass JSON with "
        "--params"
    )


def test_all_issues_are_reported_without_the_values() -> None:
    with pytest.raises(ParameterError) as caught:
        parse_pairs(["count=s3cret", "flag=s3cret", "nope=s3cret"], SCHEMA)
    assert len(caught.value.issues) == 3
    assert "s3cret" not in str(caught.value)


def test_an_unknown_choice_lists_the_allowed_ones() -> None:
    schema = {"properties": {"level": {"enum": [1, 2]}}}
    with pytest.raises(ParameterError, match="level: expected one of 1, 2;"):
        parse_pairs(["level=auto"], schema)


@pytest.mark.parametrize("schema", [None, {}, {"type": "object"}, {"properties": "nonsense"}])
def test_without_a_schema_everything_is_text(schema: Any) -> None:
    assert parse_pairs(["n=3", "flag=true"], schema) == {"n": "3", "flag": "true"}


@pytest.mark.parametrize(
    ("more", "value"),
    [
        ({"additionalProperties": True}, "3"),
        ({"additionalProperties": {"type": "integer"}}, 3),
        ({"patternProperties": {"^x_": {"type": "integer"}}}, 3),
    ],
)
def test_a_schema_can_allow_other_names(more: dict[str, Any], value: object) -> None:
    schema = {"properties": {"known": {"type": "string"}}, **more}
    assert parse_pairs(["x_other=3"], schema) == {"x_other": value}


def test_unknown_names_are_refused_unless_the_schema_allows_them() -> None:
    with pytest.raises(ParameterError, match=r"unknown parameter 'other' \(known: known\)"):
        parse_pairs(["other=3"], {"properties": {"known": {}}})
    with pytest.raises(ParameterError, match="unknown parameter 'other'"):
        parse_pairs(["other=3"], {"additionalProperties": False})


def test_parameters_of_subschemas_are_known() -> None:
    schema = {
        "allOf": [{"properties": {"a": {"type": "integer"}}}, {"$ref": "#/$defs/more"}],
        "$defs": {"more": {"properties": {"b": {"type": "boolean"}}}},
        "if": {},
        "then": {"properties": {"c": {"type": "number"}}},
    }
    assert SchemaParameters(schema).names() == ("a", "b", "c")
    assert parse_pairs(["a=1", "b=true", "c=1.5"], schema) == {"a": 1, "b": True, "c": 1.5}


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
ANYTHING_BUT_TEXT = ["null", "boolean", "number", "array", "object"]


@given(JSON)
def test_any_json_value_is_passed_unchanged(value: Any) -> None:
    schema = {"properties": {"x": {"type": ANYTHING_BUT_TEXT}}}
    assert parse_pairs([f"x={json.dumps(value)}"], schema) == {"x": value}


@given(st.text())
def test_text_is_passed_unchanged(text: str) -> None:
    assert parse_pairs([f"text={text}"], SCHEMA) == {"text": text}


@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text(max_size=5),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    ["type", "enum", "anyOf", "allOf", "$ref", "items", "properties", "x"]
                ),
                inner,
                max_size=4,
            )
        ),
        max_leaves=12,
    ),
    st.text(max_size=5),
)
def test_no_schema_breaks_the_parser(schema: Any, text: str) -> None:
    try:
        parse_pairs([f"x={text}"], {"properties": {"x": schema}})
        parse_pairs([f"x={text}"], schema)
    except ParameterError:
        pass


class Counted(dict[str, Any]):
    """A schema that counts how often it is read."""

    reads = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.reads += 1
        assert Counted.reads < 100_000, "the schema is read without end"
        return super().get(key, default)


@pytest.mark.parametrize("key", ["allOf", "anyOf", "oneOf"])
def test_a_recursive_schema_is_visited_once(key: str) -> None:
    Counted.reads = 0
    schema = Counted({key: [{"$ref": "#"}] * 20})
    schema["properties"] = {
        "n": Counted({"type": "integer", key: [{"$ref": "#/properties/n"}] * 9})
    }
    assert parse_pairs(["n=3"], schema) == {"n": 3}
