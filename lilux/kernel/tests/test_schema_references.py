"""Schemas: invalid ones are refused, references are never fetched, drafts are respected."""

import http.server
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from lilux.primitives.errors import SchemaError
from lilux.schemas.schema_validator import validate_parameters


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
                "schema.title: a string with a lone surrogate has no JSON form; "
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
def test_an_invalid_schema_is_an_error_with_its_path(schema: Any, expected: str) -> None:
    with pytest.raises(SchemaError) as caught:
        validate_parameters({}, schema)
    assert str(caught.value) == expected


def test_a_schema_that_is_nested_too_deeply_is_an_error() -> None:
    schema: dict[str, Any] = {}
    for _ in range(100_000):
        schema = {"k": schema}
    with pytest.raises(SchemaError, match="nested deeper than 128 levels, or circular; write the"):
        validate_parameters({}, schema)


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
    result = validate_parameters({"a": "x"}, schema)
    assert result.errors == ("parameters.a: expected integer, got string",)
    meta = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert validate_parameters({"type": "object"}, meta).valid


def test_the_schema_selects_its_draft() -> None:
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
