"""Names and definitions of tools for agent frameworks."""

from __future__ import annotations

import re
from typing import Any

import pytest
from rye.catalogue.definitions import (
    FORMATS,
    by_mcp_name,
    collisions,
    definition,
    definitions,
    function_name,
    input_schema,
    mcp_name,
)
from rye.catalogue.entry import CatalogueEntry

STRANGE = [
    "a b/c",
    "größe/maß",
    "team/x@1",
    "x" * 150,
    "/".join(["part"] * 60),
    "a__b/c",
    "a_/b",
    "a/_b",
    "a.b/c",
]


def entry(item_id: str = "team/hello", **fields: Any) -> CatalogueEntry:
    values: dict[str, Any] = {
        "space": "project",
        "bundle": "",
        "path": "",
        "version": "1.0.0",
        "tool_type": "python",
        "executor_id": "x",
        "category": "",
        "description": "says hello",
        "confined": True,
        "schema": None,
        "annotations": {},
        "fault": "",
    }
    return CatalogueEntry(item_id=item_id, **{**values, **fields})


def test_the_mcp_name_has_dots() -> None:
    assert mcp_name("rye/bash/bash") == "rye.bash.bash"


def test_the_id_can_be_restored_from_the_function_name() -> None:
    assert function_name("rye/fs/read_file") == "rye__fs__read_file"
    assert function_name("rye/fs/read_file").replace("__", "/") == "rye/fs/read_file"


@pytest.mark.parametrize("item_id", ["rye/bash/bash", *STRANGE])
def test_names_contain_only_allowed_characters(item_id: str) -> None:
    assert re.fullmatch(r"[A-Za-z0-9._-]{1,128}", mcp_name(item_id))
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", function_name(item_id))


def test_function_names_are_unique() -> None:
    ids = [*STRANGE, "a/b", "a__b", "a b", "a_b", "a/b/c", "part/" * 20 + "a", "part/" * 20 + "b"]
    assert len({function_name(each) for each in ids}) == len(ids)


@pytest.mark.parametrize("item_id", ["a/b", "a_b/c", "a", *STRANGE])
def test_a_function_name_can_be_reversed_or_has_a_hash(item_id: str) -> None:
    name = function_name(item_id)
    assert name.replace("__", "/") == item_id or re.search(r"-[0-9a-f]{8}$", name)


def test_names_are_stable() -> None:
    assert function_name("a__b/c") == "a__b__c-e6f83604"
    assert mcp_name("a b/c") == "a_b.c-539138d5"


def test_ids_that_share_an_mcp_name_get_hashes_in_any_order() -> None:
    entries = [entry("a/b/c"), entry("a.b/c"), entry("d")]
    named = by_mcp_name(entries)
    assert named["d"].item_id == "d"
    assert "a.b.c" not in named, "neither gets the shared name"
    assert sorted(each.item_id for each in named.values()) == ["a.b/c", "a/b/c", "d"]
    assert by_mcp_name(reversed(entries)) == named
    assert collisions(entries) == (("a/b/c", "a.b/c"),)


@pytest.mark.parametrize(
    "schema",
    [
        None,
        {},
        {"properties": {"a": {"type": "string"}}},
        {"type": ["object", "null"]},
        {"$ref": "#/$defs/x", "$defs": {"x": {"type": "object"}}},
    ],
)
def test_the_input_schema_always_has_type_object(schema: Any) -> None:
    made = input_schema(entry(schema=schema))
    assert made["type"] == "object"
    assert isinstance(made["properties"], dict)
    assert {
        key: value for key, value in (schema or {}).items() if key != "type"
    }.items() <= made.items()


def test_the_schema_of_the_entry_is_not_modified() -> None:
    schema = {"properties": {"a": {}}, "anyOf": [{}]}
    for wanted in FORMATS:
        definition(entry(schema=schema), wanted)
    assert schema == {"properties": {"a": {}}, "anyOf": [{}]}


def test_an_mcp_definition_is_valid_for_the_official_sdk() -> None:
    from mcp.types import Tool

    hints = {"read_only": True, "destructive": False, "idempotent": True, "open_world": False}
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    made = definition(entry(schema=schema, annotations={**hints, "other": 1}), "mcp")
    tool = Tool.model_validate(made, by_alias=True, by_name=False)
    assert tool.name == "team.hello"
    assert tool.description == "says hello"
    assert tool.model_dump(by_alias=True, exclude_none=True) == made
    assert made["annotations"] == {
        "readOnlyHint": True,
        "destructiveHint": False,
        "idempotentHint": True,
        "openWorldHint": False,
    }


def test_an_annotation_that_is_not_a_boolean_is_ignored() -> None:
    assert definition(entry(annotations={"read_only": "yes"}), "mcp")["annotations"] == {}


def test_an_openai_definition_is_a_function() -> None:
    schema = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    assert definition(entry(schema=schema), "openai") == {
        "type": "function",
        "function": {"name": "team__hello", "description": "says hello", "parameters": schema},
    }


def test_an_anthropic_definition_has_an_input_schema() -> None:
    assert definition(entry(), "anthropic") == {
        "name": "team__hello",
        "description": "says hello",
        "input_schema": {"type": "object", "properties": {}},
    }


@pytest.mark.parametrize("wanted", ["openai", "anthropic"])
def test_keywords_that_frameworks_reject_at_the_top_are_left_out(wanted: Any) -> None:
    schema = {"properties": {"a": {"anyOf": [{"type": "string"}]}}, "anyOf": [{"required": ["a"]}]}
    made = definition(entry(schema=schema), wanted)
    parameters = made["function"]["parameters"] if wanted == "openai" else made["input_schema"]
    assert parameters == {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}]}}}
    assert definition(entry(schema=schema), "mcp")["inputSchema"]["anyOf"] == [{"required": ["a"]}]


def test_the_description_has_the_id_if_the_name_cannot_be_reversed() -> None:
    made = definition(entry("a__b/c"), "anthropic")
    assert made["description"] == "says hello (rye: a__b/c)"


def test_definitions_have_unique_names() -> None:
    made = definitions([entry("a/b/c"), entry("a.b/c")], "mcp")
    assert len({each["name"] for each in made}) == 2


def test_an_unknown_format_is_refused() -> None:
    with pytest.raises(
        ValueError, match="unknown format 'x'; expected one of mcp, openai, anthropic"
    ):
        definition(entry(), "x")  # type: ignore[arg-type] # invalid on purpose
