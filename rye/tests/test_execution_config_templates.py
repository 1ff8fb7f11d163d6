"""The meaning of placeholders in the config of a chain."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from config_builds import args, build, one_tool, tool_file
from rye.errors import ConfigTemplateError, ParameterError
from rye_elements import HTTP_CLIENT, Workshop

TRICKY = "${SECRET} {env} {params_json} {tool_path} $(rm) `rm` 'q' \"d\"\n-- {command}"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def test_a_callers_text_is_never_a_template(workshop: Workshop) -> None:
    assert args(workshop, ["{v}", "--x={v}"], {"v": TRICKY}) == [TRICKY, f"--x={TRICKY}"]
    nested = {"outer": {"inner": [TRICKY]}}
    (text,) = args(workshop, ["{params_json}"], nested)
    assert json.loads(text) == nested
    assert "hunter2" not in text


def test_environment_values_and_paths_are_never_templates(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "{v} ${SECRET}")
    chain = one_tool(workshop, {"command": "${CMD}", "args": ["{tool_path}", "${CMD}"]})
    config = build(workshop, chain, {"v": "value"}, {"CMD": "/{v}${SECRET}"}).config
    assert config["command"] == "/{v}${SECRET}"
    assert config["args"] == [str(chain[0].path), "/{v}${SECRET}"]
    assert config["cwd"] == str(workshop.project) + "/"


def test_author_templates_may_refer_to_author_values_three_levels_deep(workshop: Workshop) -> None:
    config = {
        "command": "one/{one}",
        "args": ["{list}", "n={number}", "{flags}", "--x={v}"],
        "one": "<{two}>",
        "two": "[{three}]",
        "three": "(3)",
        "list": ["{v}", "{two}"],
        "number": 7,
        "flags": ["-a", "-b"],
    }
    result = build(workshop, one_tool(workshop, config), {"v": "{two}"}).config
    assert result["command"] == "one/<[(3)]>"
    assert result["args"] == ["{two}", "[(3)]", "n=7", "-a", "-b", "--x={two}"]
    assert "one" not in result


def test_a_mapping_of_the_author_becomes_json_after_it_is_rendered(
    workshop: Workshop,
) -> None:
    config = {
        "command": "x",
        "input_data": {"server": "{server}", "arguments": ["{v}"]},
        "server": {"env": {"TOKEN": "${SECRET}"}, "args": ["{v}", "--x={v}"]},
    }
    given = {"v": 'a"b'}
    text = build(workshop, one_tool(workshop, config), given, {"SECRET": 'x"y'}).config[
        "input_data"
    ]
    assert json.loads(text) == {
        "server": {"env": {"TOKEN": 'x"y'}, "args": ['a"b', '--x=a"b']},
        "arguments": ['a"b'],
    }


@pytest.mark.parametrize(
    "values",
    [
        {"one": "{two}", "two": "{one}"},
        {"one": "{two} x", "two": "{one} y"},
        {"one": "a{b}", "b": "b{c}", "c": "c{d}", "d": "d{e}", "e": "e"},
    ],
)
def test_references_that_form_a_cycle_or_are_too_deep_are_refused(
    workshop: Workshop, values: dict[str, str]
) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, one_tool(workshop, {"command": "{one}", **values}))
    assert str(caught.value) == (
        f"{tool_file(workshop)}: 'a/tool': config.command: its references form a cycle or "
        "are nested more than 3 deep; replace a reference by its value"
    )


def test_a_value_that_refers_to_itself_does_not_recurse(workshop: Workshop) -> None:
    result = build(workshop, one_tool(workshop, {"command": "x{command}"})).config
    assert result["command"] == "x{command}"
    config = {"command": "x", "args": ["{list}"], "list": ["{list} {list}"]}
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, one_tool(workshop, config))
    assert str(caught.value) == (
        f"{tool_file(workshop)}: 'a/tool': config.args[0]: {{list}} is part of text that a "
        "program may run; pass it as an argument of its own, or refer to its parts"
    )


def test_expanded_references_are_bounded(workshop: Workshop) -> None:
    config = {"command": "{a}" * 2000, "a": "y" * 1000}
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, one_tool(workshop, config))
    assert str(caught.value) == (
        f"{tool_file(workshop)}: 'a/tool': config.command: expands to more than 1048576 "
        "characters; shorten the values that it refers to"
    )


def test_a_template_may_name_a_parameter_with_the_name_of_a_setting(workshop: Workshop) -> None:
    config = {"command": "bash", "args": ["-c", "{command}"], "timeout": "{timeout}"}
    chain = one_tool(workshop, config)
    result = build(workshop, chain, {"command": "echo hi", "timeout": 2.5}).config
    assert (result["command"], result["args"], result["timeout"]) == (
        "bash",
        ["-c", "echo hi"],
        2.5,
    )


def test_a_parameter_cannot_replace_an_authors_value(workshop: Workshop) -> None:
    """Otherwise a caller could send the author's credentials to another host."""
    config = {"url": "{base}/v1/{id}", "base": "https://api.example.org"}
    evil = {"base": "https://evil.example", "id": "7"}
    tool = workshop.element("t.yaml", config=config)
    result = build(workshop, [tool, workshop.primitive(HTTP_CLIENT)], evil)
    assert result.config["url"] == "https://api.example.org/v1/{id}"
    assert result.params == {"id": "7"}


def test_an_authors_value_is_the_default_of_a_declared_parameter(
    workshop: Workshop,
) -> None:
    schema = {"type": "object", "properties": {"region": {"type": "string"}}}
    config = {"command": "x", "args": ["{region}"], "region": "eu"}
    chain = one_tool(workshop, config, config_schema=schema)
    assert build(workshop, chain, {"region": "us"}).config["args"] == ["us"]
    assert build(workshop, chain).config["args"] == ["eu"]


def test_a_parameter_that_the_schema_does_not_declare_is_not_inserted(workshop: Workshop) -> None:
    """A schema without ``additionalProperties: false`` must not expose an awk program."""
    config = {"command": "awk", "args": ["/x/ {print}", "{file}"]}
    schema: dict[str, Any] = {"type": "object", "properties": {"file": {"type": "string"}}}
    given = {"file": "f", "print": 'BEGIN{system("id")}'}
    chain = one_tool(workshop, config, config_schema=schema)
    assert build(workshop, chain, given).config["args"] == ["/x/ {print}", "f"]
    opened = one_tool(workshop, config, config_schema={**schema, "additionalProperties": True})
    with pytest.raises(ConfigTemplateError, match=r"\{print\} is part of text that a program"):
        build(workshop, opened, given)


def test_an_unknown_placeholder_is_left_as_it_is(workshop: Workshop) -> None:
    assert args(workshop, ["{what}", "a{what}b", "${lower}"], {}) == [
        "{what}",
        "a{what}b",
        "${lower}",
    ]


def test_a_missing_parameter_is_omitted_as_a_whole_value_and_an_error_in_a_text(
    workshop: Workshop,
) -> None:
    schema = {"type": "object", "properties": {"opt": {}}}
    chain = one_tool(
        workshop,
        {"command": "x", "args": ["a", "{opt}"], "input_data": "{opt}", "timeout": "{opt}"},
        config_schema=schema,
    )
    config = build(workshop, chain).config
    assert config["args"] == ["a"]
    assert "input_data" not in config
    assert "timeout" not in config
    chain = one_tool(workshop, {"command": "x", "args": ["--opt={opt}"]}, config_schema=schema)
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, chain)
    assert str(caught.value) == (
        f"{tool_file(workshop)}: 'a/tool': config.args[0]: parameter 'opt' is missing, and "
        "the text around it needs a value; pass it, or make it required or give it a default in "
        "the schema"
    )


def test_parameters_that_json_cannot_express_are_named(workshop: Workshop) -> None:
    given = {"ok": 1, "raw": b"x", "nan": float("nan"), "huge": 10**5000, "half": "\ud800"}
    with pytest.raises(ParameterError) as caught:
        args(workshop, ["{params_json}"], given)
    assert str(caught.value) == (
        "invalid parameters for 'a/tool': 'raw' cannot be written as JSON; 'nan' cannot be written "
        "as JSON; 'huge' cannot be written as JSON; pass strings, finite numbers, booleans, "
        "lists and objects"
    )


def test_params_json_carries_values_that_argv_cannot(workshop: Workshop) -> None:
    given = {"nul": "a\0b", "half": "\ud800", "ü": "€"}
    (text,) = args(workshop, ["{params_json}"], given)
    assert text.isascii()
    assert json.loads(text) == given
