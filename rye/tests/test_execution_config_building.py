"""From a chain and parameters to the config of its primitive."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from config_builds import build, one_tool, tool_file
from rye.errors import ConfigTemplateError
from rye.executor.chain.anchor import resolve_anchor
from rye.executor.config.build import build_execution_config
from rye.executor.config.environment import ChainEnvironment
from rye_elements import Workshop


@pytest.fixture
def workshop(tmp_path: Path) -> Workshop:
    return Workshop(tmp_path)


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


def test_variables_become_text_and_null_removes_one(workshop: Workshop) -> None:
    env = {"N": 1, "V": "{v}", "PATHS": "${SECRET}:/bin", "SECRET": None}
    chain = one_tool(workshop, {"command": "x", "env": env})
    assert build(workshop, chain, {"v": "${SECRET}"}).config["env"] == {
        "N": "1",
        "V": "${SECRET}",
        "PATHS": "hunter2:/bin",
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
