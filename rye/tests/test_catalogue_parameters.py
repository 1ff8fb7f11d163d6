"""Lists of parameters for people, and example parameters, both from a schema."""

from __future__ import annotations

from typing import Any

import pytest
from lilux.schemas.schema_validator import SchemaValidator
from rye.catalogue.example import example_parameters
from rye.catalogue.parameters import parameters_of


def of(**properties: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}


def test_parameters_have_a_kind_a_default_and_a_description() -> None:
    schema = {
        "properties": {
            "deep": {"type": "boolean", "default": False},
            "path": {"type": "string", "description": "the\n  file"},
            "mode": {"enum": ["r", "w"], "title": "how"},
        },
        "required": ["path"],
    }
    assert [tuple(each) for each in parameters_of(schema)] == [
        ("path", "string", True, "", "the file"),
        ("deep", "boolean", False, "false", ""),
        ("mode", 'one of "r", "w"', False, "", "how"),
    ]


@pytest.mark.parametrize(
    ("part", "kind"),
    [
        ({"type": "integer", "minimum": 0, "maximum": 9}, "integer, 0 to 9"),
        ({"type": "integer", "minimum": 0}, "integer, at least 0"),
        ({"type": "number", "exclusiveMinimum": 0, "maximum": 5}, "number, at most 5, above 0"),
        ({"type": "array", "items": {"type": "string"}}, "list of string"),
        ({"type": "array"}, "list"),
        ({"type": ["string", "null"]}, "string or null"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"const": 3}, "3"),
        ({}, "any"),
        ({"properties": {}}, "object"),
        ({"$ref": "#/$defs/size"}, "integer, at least 1"),
        ({"$ref": "#/$defs/nowhere"}, "any"),
        ({"$ref": "#/$defs/loop"}, "any"),
        ({"type": "string", "format": "uri"}, "string, uri"),
        ({"enum": list(range(20))}, "one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11 and 8 more"),
        (True, "any"),
    ],
)
def test_kinds_are_described_in_words(part: Any, kind: str) -> None:
    schema = {
        "properties": {"x": part},
        "$defs": {"size": {"type": "integer", "minimum": 1}, "loop": {"$ref": "#/$defs/loop"}},
    }
    assert parameters_of(schema)[0].kind == kind


def test_fields_of_objects_and_of_list_elements_have_paths() -> None:
    schema = of(
        retry={"type": "object", "properties": {"times": {"type": "integer"}}},
        edits={"type": "array", "items": {"properties": {"at": {"type": "integer"}}}},
    )
    assert [each.name for each in parameters_of(schema)] == [
        "retry", "retry.times", "edits", "edits[].at",
    ]  # fmt: skip


def test_an_object_that_contains_itself_is_listed_once() -> None:
    schema = {"properties": {"name": {}, "children": {"type": "array", "items": {"$ref": "#"}}}}
    assert [each.name for each in parameters_of(schema)] == ["name", "children"]


class Counted(dict[str, Any]):
    """A schema that counts lookups, and fails after too many."""

    lookups = 0

    def get(self, key: str, default: Any = None) -> Any:
        Counted.lookups += 1
        assert Counted.lookups < 1_000_000, "too many lookups for a small schema"
        return super().get(key, default)


@pytest.mark.parametrize("key", ["properties", "allOf", "anyOf"])
def test_a_schema_cannot_grow_exponentially_through_references(key: str) -> None:
    levels = {}
    for number in range(8):
        many = [{"$ref": f"#/$defs/level{number + 1}"}] * 20
        named = {f"p{at}": each for at, each in enumerate(many)}
        levels[f"level{number}"] = {key: named if key == "properties" else many}
    Counted.lookups = 0
    schema = Counted(of(start={"$ref": "#/$defs/level0"}) | {"$defs": levels})
    assert parameters_of(schema)[0].name == "start"
    example_parameters(schema)


def test_an_example_has_no_excessively_long_text() -> None:
    assert example_parameters(of(text={"type": "string", "minLength": 10**12})) is None


def test_without_a_schema_there_are_no_parameters() -> None:
    assert parameters_of(None) == ()
    assert example_parameters(None) == {}


SCHEMAS: list[dict[str, Any]] = [
    of(name={"type": "string"}),
    of(name={"type": "string", "minLength": 30}),
    of(name={"type": "string", "maxLength": 2}),
    of(n={"type": "integer", "minimum": 5, "maximum": 5}),
    of(n={"type": "integer", "exclusiveMinimum": 0}),
    of(n={"type": "integer", "maximum": -4}),
    of(n={"type": "number", "exclusiveMinimum": 0, "exclusiveMaximum": 1}),
    of(n={"type": "integer", "multipleOf": 7, "minimum": 8}),
    of(flag={"type": "boolean"}),
    of(nothing={"type": "null"}),
    of(maybe={"type": ["null", "integer"]}),
    of(mode={"enum": ["fast", "slow"]}),
    of(mode={"const": {"a": [1]}}),
    of(text={"type": "string", "pattern": "^[A-Z]{3}$", "examples": ["ABC"]}),
    of(when={"type": "string", "format": "date-time"}),
    of(items={"type": "array", "items": {"type": "integer"}, "minItems": 3}),
    of(items={"type": "array", "items": {"type": "string"}, "minItems": 2, "uniqueItems": True}),
    of(items={"type": "array", "items": {"enum": ["a", "b"]}, "minItems": 2, "uniqueItems": True}),
    of(deep=of(deeper=of(deepest={"type": "string"}))),
    of(ref={"$ref": "#/$defs/x"}) | {"$defs": {"x": of(y={"type": "integer"})}},
    of(either={"anyOf": [{"type": "integer"}, {"type": "string"}]}),
    {"allOf": [of(a={"type": "string"}), of(b={"type": "integer"})], "type": "object"},
    {"type": "object", "properties": {"a": {"type": "string"}}, "minProperties": 1},
    {"type": "object", "required": ["undescribed"]},
]


@pytest.mark.parametrize("schema", SCHEMAS, ids=str)
def test_an_example_passes_the_schema(schema: dict[str, Any]) -> None:
    example = example_parameters(schema)
    assert example is not None
    assert SchemaValidator().compile(schema).validate(example).valid


def test_an_example_has_only_required_parameters_if_they_suffice() -> None:
    schema = of(path={"type": "string"})
    schema["properties"]["more"] = {"type": "string"}
    assert example_parameters(schema) == {"path": "README.md"}


@pytest.mark.parametrize(
    "schema",
    [
        of(text={"type": "string", "pattern": "^[A-Z]{3}$"}),
        of(text={"not": {}}),
        {"type": "nonsense"},
    ],
)
def test_no_example_is_better_than_an_invalid_one(schema: dict[str, Any]) -> None:
    assert example_parameters(schema) is None
