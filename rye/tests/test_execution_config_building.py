"""From a chain and parameters to the config of its primitive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from rye.errors import ConfigTemplateError, ParameterError
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.config.build import ExecutionConfig, build_execution_config
from rye.executor.config.environment import ChainEnvironment
from rye.items.element import ChainElement
from rye_elements import HTTP_CLIENT, Workshop

TRICKY = "${SECRET} {env} {params_json} {tool_path} $(rm) `rm` 'q' \"d\"\n-- {command}"


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


def tool_file(workshop: Workshop) -> Path:
    return workshop.tools("project") / "a" / "tool.py"


def build(
    workshop: Workshop,
    chain: list[ChainElement],
    parameters: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    **options: Any,
) -> ExecutionConfig:
    anchor = resolve_anchor(chain, workshop.context)
    variables = {"SECRET": "hunter2", **(env or {})}
    return build_execution_config(
        chain, parameters or {}, variables, anchor, workshop.context, **options
    )


def one_tool(workshop: Workshop, config: dict[str, Any], **metadata: Any) -> list[ChainElement]:
    return [workshop.element("a/tool.py", config=config, **metadata), workshop.primitive()]


def args(workshop: Workshop, templates: list[Any], parameters: dict[str, Any]) -> list[str]:
    chain = one_tool(workshop, {"command": "x", "args": templates})
    result: list[str] = build(workshop, chain, parameters).config["args"]
    return result


def test_a_tool_overrides_its_runtime_key_by_key(workshop: Workshop) -> None:
    tool = workshop.element("t.py", config={"timeout": 5, "env": {"B": "tool"}, "args": ["one"]})
    runtime = workshop.element(
        "r.yaml",
        config={"command": "run", "args": ["a", "b"], "timeout": 300, "env": {"A": "1", "B": "2"}},
    )
    primitive = workshop.primitive(config={"timeout": 9, "output_limit": 7})
    config = build(workshop, [tool, runtime, primitive]).config
    assert config == {
        "command": "run",
        "args": ["one"],
        "timeout": 5,
        "output_limit": 7,
        "cwd": str(workshop.project) + "/",
        "env": {"SECRET": "hunter2", "A": "1", "B": "tool"},
        "env_mode": "exact",
        "render": False,
    }


def test_injected_values_cannot_be_overridden(workshop: Workshop) -> None:
    tool = workshop.element("cat/tool.py")
    runtime = workshop.element("lang/r.yaml", anchor={"mode": "never", "lib": "lib"})
    assert runtime.path is not None
    assert tool.path is not None
    (runtime.path.parent / "lib").mkdir()
    names = [
        *("tool_path", "tool_dir", "tool_parent", "anchor_path", "runtime_lib"),
        *("project_path", "user_space", "system_space", "params_json"),
    ]
    config: dict[str, Any] = dict.fromkeys(names, "an author's own value")
    config |= {"command": "x", "args": [f"{{{name}}}" for name in names]}
    template = workshop.element("lang/r2.yaml", config=config)
    given = dict.fromkeys(names, "evil")
    result = build(workshop, [tool, template, runtime, workshop.primitive()], given)
    assert result.config["args"] == [
        str(tool.path),
        str(tool.path.parent),
        str(tool.path.parent.parent),
        str(tool.path.parent),
        str(runtime.path.parent / "lib"),
        str(workshop.project),
        str(workshop.root / "user"),
        str(workshop.root / "system"),
        json.dumps(given, separators=(",", ":")),
    ]


def test_a_callers_text_is_never_a_template(workshop: Workshop) -> None:
    assert args(workshop, ["{v}", "x {v}"], {"v": TRICKY}) == [TRICKY, f"x {TRICKY}"]
    nested = {"outer": {"inner": [TRICKY]}}
    (text,) = args(workshop, ["{params_json}"], nested)
    assert json.loads(text) == nested
    assert "hunter2" not in text


def test_environment_values_and_paths_are_never_templates(tmp_path: Path) -> None:
    workshop = Workshop(tmp_path / "{v} ${SECRET}")
    chain = one_tool(workshop, {"command": "${CMD}", "args": ["{tool_path}", "${CMD}/{v}"]})
    config = build(workshop, chain, {"v": "value"}, {"CMD": "{v}${SECRET}"}).config
    assert config["command"] == "{v}${SECRET}"
    assert config["args"] == [str(chain[0].path), "{v}${SECRET}/value"]
    assert config["cwd"] == str(workshop.project) + "/"


def test_author_templates_may_refer_to_author_values_three_levels_deep(workshop: Workshop) -> None:
    config = {
        "command": "{one}",
        "args": ["{list}", "n={number}", "{flags}", "--{v}"],
        "one": "<{two}>",
        "two": "[{three}]",
        "three": "({v} ${SECRET})",
        "list": ["{v}", "{two}"],
        "number": 7,
        "flags": ["-a", "-b"],
    }
    result = build(workshop, one_tool(workshop, config), {"v": "{two}"}).config
    assert result["command"] == "<[({two} hunter2)]>"
    assert result["args"] == ["{two}", "[({two} hunter2)]", "n=7", "-a", "-b", "--{two}"]
    assert "one" not in result


def test_a_mapping_of_the_author_becomes_json_after_it_is_rendered(
    workshop: Workshop,
) -> None:
    config = {
        "command": "x",
        "input_data": '{"server":{server},"arguments":{params_json}}',
        "server": {"env": {"TOKEN": "${SECRET}"}, "args": ["{v}", "-{v}"]},
    }
    given = {"v": 'a"b'}
    text = build(workshop, one_tool(workshop, config), given, {"SECRET": 'x"y'}).config[
        "input_data"
    ]
    assert json.loads(text) == {
        "server": {"env": {"TOKEN": 'x"y'}, "args": ['a"b', '-a"b']},
        "arguments": given,
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
    config = {"command": "x{command}", "args": ["{list}"], "list": ["{list} {list}"]}
    result = build(workshop, one_tool(workshop, config)).config
    assert result["command"] == "x{command}"
    assert result["args"] == ['["{list} {list}"] ["{list} {list}"]']


def test_expanded_references_are_bounded(workshop: Workshop) -> None:
    config = {"command": "{a}" * 2000, "a": "y" * 1000}
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, one_tool(workshop, config))
    assert str(caught.value) == (
        f"{tool_file(workshop)}: 'a/tool': config.command: expands to more than 1048576 "
        "characters; shorten the values that it refers to"
    )


def test_parameters_named_like_settings_reach_the_tool_and_not_the_primitive(
    workshop: Workshop,
) -> None:
    chain = one_tool(workshop, {"command": "run", "args": ["{params_json}"], "timeout": 9})
    evil = {
        "timeout": 0.001,
        "cwd": "/etc",
        "env": {"LD_PRELOAD": "x"},
        "command": "rm",
        "args": ["-rf"],
        "render": True,
        "env_mode": "merge",
    }
    config = build(workshop, chain, evil).config
    assert (config["command"], config["timeout"]) == ("run", 9)
    assert config["cwd"] == str(workshop.project) + "/"
    assert config["env"] == {"SECRET": "hunter2"}
    assert (config["render"], config["env_mode"]) == (False, "exact")
    assert json.loads(config["args"][0]) == evil


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
    config = {"command": "sh", "args": ["-c", "grep '{print}' {file}"]}
    schema: dict[str, Any] = {"type": "object", "properties": {"file": {"type": "string"}}}
    given = {"file": "f", "print": 'BEGIN{system("id")}'}
    chain = one_tool(workshop, config, config_schema=schema)
    assert build(workshop, chain, given).config["args"][1] == "grep '{print}' 'f'"
    opened = one_tool(workshop, config, config_schema={**schema, "additionalProperties": True})
    assert "system" in build(workshop, opened, given).config["args"][1]


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
        "wrong parameters for 'a/tool': 'raw' cannot be written as JSON; 'nan' cannot be written "
        "as JSON; 'huge' cannot be written as JSON; pass strings, finite numbers, booleans, "
        "lists and objects"
    )


def test_params_json_carries_values_that_argv_cannot(workshop: Workshop) -> None:
    given = {"nul": "a\0b", "half": "\ud800", "ü": "€"}
    (text,) = args(workshop, ["{params_json}"], given)
    assert text.isascii()
    assert json.loads(text) == given


def test_variables_become_text_and_null_removes_one(workshop: Workshop) -> None:
    env = {"N": 1, "V": "{v}", "PATHS": "${SECRET}:{v}", "SECRET": None}
    chain = one_tool(workshop, {"command": "x", "env": env})
    assert build(workshop, chain, {"v": "${SECRET}"}).config["env"] == {
        "N": "1",
        "V": "${SECRET}",
        "PATHS": "hunter2:${SECRET}",
    }


@pytest.mark.parametrize(
    ("env", "problem"),
    [
        ({"A=b": "x"}, "'A=b' is not a valid variable name; rename the variable"),
        (["A"], "expected a mapping, got list; write NAME: value"),
    ],
)
def test_invalid_variables_are_refused(workshop: Workshop, env: Any, problem: str) -> None:
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, one_tool(workshop, {"command": "x", "env": env}))
    assert str(caught.value) == f"{tool_file(workshop)}: 'a/tool': config.env: {problem}"


def test_a_nul_in_a_variable_or_folder_is_refused(workshop: Workshop) -> None:
    for config, where in (({"env": {"V": "{v}"}}, "env.V"), ({"cwd": "{v}"}, "cwd")):
        with pytest.raises(ConfigTemplateError) as caught:
            build(workshop, one_tool(workshop, {"command": "x", **config}), {"v": "\0"})
        assert str(caught.value).startswith(
            f"{tool_file(workshop)}: 'a/tool': config.{where}: contains a NUL character"
        )


def test_a_folder_is_relative_to_the_project(workshop: Workshop) -> None:
    chain = one_tool(workshop, {"command": "x", "cwd": "{project_path}/{cwd}"})
    assert build(workshop, chain, {"cwd": "."}).config["cwd"] == f"{workshop.project}/."
    chain = one_tool(workshop, {"command": "x", "cwd": "sub"})
    assert build(workshop, chain).config["cwd"] == f"{workshop.project}/sub"


def test_a_timeout_in_text_becomes_a_number_and_the_calls_timeout_takes_precedence(
    workshop: Workshop,
) -> None:
    chain = one_tool(workshop, {"command": "x", "timeout": "${LIMIT:-30}"})
    assert build(workshop, chain).config["timeout"] == 30
    assert build(workshop, chain, timeout=2).config["timeout"] == 2
    with pytest.raises(ConfigTemplateError) as caught:
        build(workshop, chain, env={"LIMIT": "soon"})
    assert str(caught.value) == (
        f"{tool_file(workshop)}: 'a/tool': config.timeout: is not a number of seconds; "
        "write for example 30"
    )


def test_the_parameters_of_a_primitive_called_directly_are_its_literal_config(
    workshop: Workshop,
) -> None:
    given = {
        "command": "sh",
        "args": ["-c", "echo ${SECRET} {env}"],
        "env": {"A": "${SECRET}"},
        "env_mode": "merge",
        "render": True,
        "input_data": "{command}",
    }
    result = build(workshop, [workshop.primitive()], given)
    assert result.config == {
        "command": "sh",
        "args": ["-c", "echo ${SECRET} {env}"],
        "env": {"SECRET": "hunter2", "A": "${SECRET}"},
        "env_mode": "exact",
        "render": False,
        "input_data": "{command}",
        "cwd": str(workshop.project) + "/",
    }
    assert result.params == {}
    alone = build(workshop, [workshop.primitive()], {**given, "env_mode": "exact"})
    assert alone.config["env"] == {"A": "${SECRET}"}


def test_a_primitive_of_another_package_gets_a_rendered_config(workshop: Workshop) -> None:
    tool = workshop.element("t.yaml", config={"query": "{v} ${SECRET}", "note": "{query}!"})
    result = build(workshop, [tool, workshop.primitive("other/queue")], {"v": "{query}"})
    assert result.config["query"] == "{query} hunter2"
    assert result.config["note"] == "{query} hunter2!"
    assert (result.config["render"], result.config["env"]) == (False, {"SECRET": "hunter2"})
    assert result.params == {"v": "{query}"}


def test_the_anchor_is_applied_to_the_environment_of_the_chain(workshop: Workshop) -> None:
    tool = workshop.element("pkg/tool.py")
    anchor = {"mode": "always", "env_paths": {"PYTHONPATH": {"prepend": ["{anchor_path}"]}}}
    runtime = workshop.element("r.yaml", config={"command": "x"}, anchor=anchor)
    chain = [tool, runtime, workshop.primitive()]
    env = ChainEnvironment(env={"PYTHONPATH": "/there"}, declared=frozenset())
    resolved = resolve_anchor(chain, workshop.context)
    result = build_execution_config(chain, {}, env, resolved, workshop.context)
    folder = workshop.tools("project") / "pkg"
    assert result.config["env"] == {"PYTHONPATH": f"{folder}:/there"}


def test_values_are_not_part_of_the_repr(workshop: Workshop) -> None:
    result = build(workshop, one_tool(workshop, {"command": "x", "args": ["${SECRET}"]}))
    assert result.config["args"] == ["hunter2"]
    assert "hunter2" not in repr(result)
