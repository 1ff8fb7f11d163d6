"""Schema validation: exact words, no values in them, nothing fetched, nothing stale."""

import copy
import http.server
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from lilux.primitives.errors import SchemaError
from lilux.schemas.schema_validator import (
    SchemaValidator,
    ValidationResult,
    validate_parameters,
    with_defaults,
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


def test_a_deep_path_is_spelled_from_the_outside_in() -> None:
    schema = {
        "properties": {
            "jobs": {"items": {"properties": {"env": {"additionalProperties": {"type": "string"}}}}}
        }
    }
    parameters = {"jobs": [{}, {"env": {"A KEY": 3}}]}
    assert errors_of(parameters, schema) == (
        'parameters.jobs[1].env["A KEY"]: expected string, got integer',
    )


def test_all_errors_are_told_up_to_a_bound() -> None:
    schema = {"items": {"type": "string"}}
    assert len(errors_of([1, 2, 3], schema)) == 3
    many = errors_of(list(range(1000)), schema)
    assert len(many) == 51
    assert many[-1] == "parameters: more than 50 errors; the rest is left out"


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
        ("\ud800", "parameters: a text with a lone surrogate has no JSON form"),
        ({"a": "\ud800"}, "parameters.a: a text with a lone surrogate has no JSON form"),
        ({"a": ["\ude00x"]}, "parameters.a[0]: a text with a lone surrogate has no JSON form"),
        (
            {"a": {"\ud800": 1}},
            "parameters.a: the key '\\ud800': a text with a lone surrogate has no JSON form",
        ),
    ],
)
def test_parameters_that_json_cannot_express_are_a_failed_result(
    parameters: Any, expected: str
) -> None:
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


@pytest.mark.parametrize(
    ("schema", "expected"),
    [
        (
            {"type": "nope"},
            (
                "schema.type: none of the 2 alternatives matches (expected one of "
                '"array", "boolean", "integer", "null", "number", "object", "string"; '
                "or expected array, got string); correct the schema"
            ),
        ),
        (
            {"properties": {"x": {"minimum": "q"}}},
            "schema.properties.x.minimum: expected number, got string; correct the schema",
        ),
        ({"pattern": "("}, 'schema.pattern: expected the format "regex"; correct the schema'),
        ([], "schema: expected boolean or object, got array; correct the schema"),
        (
            {"$ref": "#/$defs/gone"},
            "the schema has a broken reference: Pointer '/$defs/gone' does not exist; correct it",
        ),
        (
            {"default": object()},
            (
                "schema.default: a value of type object has no JSON form; "
                "write the schema as plain JSON"
            ),
        ),
        (
            {"default": [b"raw"]},
            (
                "schema.default[0]: a value of type bytes has no JSON form; "
                "write the schema as plain JSON"
            ),
        ),
        (
            {"properties": {1: {}}},
            "schema.properties: keys must be strings, got int; write the schema as plain JSON",
        ),
        (
            {"title": "\ud800"},
            (
                "schema.title: a text with a lone surrogate has no JSON form; "
                "write the schema as plain JSON"
            ),
        ),
        (
            {"$schema": "urn:unknown"},
            (
                "the schema has a broken reference: Unknown meta-schema: 'urn:unknown'. Custom "
                "meta-schemas must be registered in the registry before use; correct it"
            ),
        ),
    ],
)
def test_an_invalid_schema_is_an_error_that_names_the_place(schema: Any, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        validate_parameters({}, schema)
    assert str(caught.value) == expected


def test_a_bottomless_schema_is_an_error() -> None:
    with pytest.raises(SchemaError, match="nested deeper than 128 levels, or circular; write the"):
        validate_parameters({}, nested(100_000))


@pytest.fixture
def server() -> Iterator[tuple[str, list[str]]]:
    asked: list[str] = []

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(b"true")

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - as inherited
            pass

    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=httpd.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}", asked
    httpd.shutdown()
    thread.join()
    httpd.server_close()


def test_a_remote_reference_is_never_fetched(server: tuple[str, list[str]]) -> None:
    base, asked = server
    for schema in (
        {"$ref": f"{base}/s"},
        {"$id": f"{base}/", "properties": {"a": {"$ref": "s"}}},
        {"$dynamicRef": f"{base}/s"},
    ):
        with pytest.raises(SchemaError) as caught:
            validate_parameters({}, schema)
        assert str(caught.value) == (
            f"the schema refers to '{base}/s', which is not part of it and is never fetched; "
            "put the target under '$defs'"
        )
    with pytest.raises(SchemaError, match="Unknown meta-schema"):
        validate_parameters({}, {"$schema": f"{base}/meta"})
    assert asked == []


def test_a_file_reference_is_never_read(tmp_path: Path) -> None:
    target = tmp_path / "any.json"
    target.write_text("true")
    with pytest.raises(SchemaError) as caught:
        validate_parameters({}, {"$ref": target.as_uri()})
    assert str(caught.value) == (
        f"the schema refers to '{target.as_uri()}', which is not part of it and is never fetched; "
        "put the target under '$defs'"
    )


def test_references_inside_the_schema_and_to_the_drafts_work() -> None:
    schema = {"$defs": {"n": {"type": "integer"}}, "properties": {"a": {"$ref": "#/$defs/n"}}}
    assert errors_of({"a": "x"}, schema) == ("parameters.a: expected integer, got string",)
    meta = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert validate_parameters({"type": "object"}, meta).valid


def test_the_draft_is_the_one_that_the_schema_names() -> None:
    draft4 = {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "minimum": 1,
        "exclusiveMinimum": True,
    }
    assert not validate_parameters(1, draft4).valid
    assert validate_parameters(2, draft4).valid
    with pytest.raises(SchemaError, match=r"schema\.exclusiveMinimum: expected number"):
        validate_parameters(1, {"minimum": 1, "exclusiveMinimum": True})
    tuple_schema = {"prefixItems": [{"type": "string"}]}
    assert not validate_parameters([1], tuple_schema).valid
    draft7 = {"$schema": "http://json-schema.org/draft-07/schema#", **tuple_schema}
    assert validate_parameters([1], draft7).valid


def test_a_schema_changed_in_place_does_not_get_the_old_verdict() -> None:
    schema: dict[str, Any] = {"properties": {"a": {"const": 1}}}
    assert validate_parameters({"a": 1}, schema).valid
    schema["properties"]["a"]["const"] = True  # equal to 1 in Python, and not in JSON
    assert not validate_parameters({"a": 1}, schema).valid
    assert validate_parameters({"a": True}, schema).valid


def test_a_handle_keeps_the_schema_that_it_was_made_from() -> None:
    schema: dict[str, Any] = {"type": "integer"}
    handle = SchemaValidator().compile(schema)
    schema["type"] = "string"
    assert handle.validate(1).valid
    assert handle.validate("x").errors == ("parameters: expected integer, got string",)


def test_the_cache_knows_a_schema_by_content_and_is_bounded() -> None:
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


def test_an_object_without_a_default_is_not_invented() -> None:
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


def test_defaults_that_contain_themselves_are_an_error() -> None:
    endless = {"properties": {"a": {"$ref": "#", "default": {}}}}
    with pytest.raises(SchemaError) as caught:
        validate_parameters({}, endless, fill_defaults=True)
    assert str(caught.value) == (
        "the defaults of the schema nest deeper than 128 levels; "
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
def test_filled_defaults_keep_what_was_given_and_are_stable(parameters: dict[str, Any]) -> None:
    before = copy.deepcopy(parameters)
    filled = with_defaults(parameters, DEFAULTS)
    assert parameters == before
    assert filled.keys() >= parameters.keys()
    assert with_defaults(filled, DEFAULTS) == filled


def test_importing_the_validator_loads_no_compiled_library() -> None:
    code = (
        "import sys, lilux.schemas.schema_validator;"
        "print([m for m in ('jsonschema_rs', 'msgspec') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
