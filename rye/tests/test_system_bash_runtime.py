"""bash_runtime and rye/bash/bash."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rye_project import Project

HEADER = (
    '#!/usr/bin/env bash\n# /// rye\n# version = "1.0.0"\n# executor_id = "bash_runtime"\n# ///\n'
)


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


def shell_tool(project: Project, body: str) -> Path:
    return project.tool("tool.sh", HEADER + body)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("plain", "plain"),
        ("", ""),
        ("two\nlines\tand \"quotes\" 'too'", "two\nlines\tand \"quotes\" 'too'"),
        ("back\\slash \\n \\u0041 \\\\ end\\", "back\\slash \\n \\u0041 \\\\ end\\"),
        ("é 😀 \x01 /", "é 😀 \x01 /"),
        ("$(touch pwned) `id` ${HOME} {name}", "$(touch pwned) `id` ${HOME} {name}"),
        (12, "12"),
        (-1.5, "-1.5"),
        (True, "true"),
        ({"a": ["}", '"', {}], "b": []}, '{"a":["}","\\"",{}],"b":[]}'),
        ([], "[]"),
        ([1, [2]], "[1,[2]]"),
    ],
)
def test_a_parameter_is_a_variable(project: Project, value: Any, text: str) -> None:
    shell_tool(project, 'printf "<%s>" "$RYE_PARAM_FILE_NAME" "$RYE_PARAM_LAST"\n')

    result = project.run("tool", {"file-name": value, "nested": [{"x": 1}], "last": "z"})

    assert result.error is None
    assert result.data["stdout"] == f"<{text}><z>"
    assert not (project.path / "pwned").exists()


def test_null_and_missing_parameters_are_unset(project: Project) -> None:
    shell_tool(project, 'echo "${RYE_PARAM_A-unset} ${RYE_PARAM_B-unset}"\n')

    assert project.run("tool", {"a": None}).data["stdout"] == "unset unset\n"


def test_all_parameters_are_json_on_stdin(project: Project) -> None:
    shell_tool(project, "cat\n")

    parameters = {"a": "é\n", "b": {"c": [1, None]}, "big": "x" * 300_000}

    assert project.run("tool", parameters).data == parameters


def test_a_value_too_long_for_a_variable_is_on_stdin_only(project: Project) -> None:
    shell_tool(project, 'echo "${RYE_PARAM_BIG-unset} ${RYE_PARAM_LIST-unset} $RYE_PARAM_Z"\n')

    result = project.run("tool", {"big": "x" * 70_000, "list": ["y"] * 20_000, "z": 1})

    assert (result.error, result.data["stdout"]) == (None, "unset unset 1\n")


def test_two_parameters_with_the_same_variable_are_refused(project: Project) -> None:
    shell_tool(project, "echo never\n")

    result = project.run("tool", {"a-b": 1, "A_b": 2})

    assert result.data == {
        "stdout": "",
        "stderr": "two parameters have the same variable RYE_PARAM_A_B; rename one of them\n",
        "return_code": 1,
    }


def test_a_nul_character_is_refused(project: Project) -> None:
    shell_tool(project, "echo never\n")

    assert project.run("tool", {"a": "x\0y"}).data["stderr"] == (
        "a parameter contains a NUL character, which a variable cannot hold; remove it\n"
    )


def test_a_parameter_cannot_set_a_variable_of_the_system(project: Project) -> None:
    shell_tool(project, 'echo "${LD_PRELOAD-unset}"; command -v ls >/dev/null && echo found\n')

    result = project.run("tool", {"PATH": "/nowhere", "LD_PRELOAD": "/evil.so"})

    assert result.data["stdout"] == "unset\nfound\n"


def test_the_tool_sees_its_own_path_and_sets_the_exit_code(project: Project) -> None:
    shell_tool(
        project,
        'echo "$0 ${BASH_SOURCE[0]} $# $RYE_PROJECT_PATH $PWD"\n'
        "compgen -A function -A variable | grep -i __rye_[^t] >&2\nexit 7\n",
    )

    result = project.run("tool")

    path = f"{project.user}/.ai/cache/closures/{result.metadata['closure']}/tool/tool.sh"
    assert result.data == {
        "stdout": f"{path} {path} 0 {project.path} {project.path}\n",
        "stderr": "",
        "return_code": 7,
    }


def test_json_that_a_shell_tool_prints_is_data(project: Project) -> None:
    shell_tool(project, """printf '{"sum": %d}' "$((RYE_PARAM_A + RYE_PARAM_B))"\n""")

    assert project.run("tool", {"a": 40, "b": 2}).data == {"sum": 42}


texts = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(before=values, text=texts, after=values)
def test_a_text_among_other_parameters_arrives_unchanged(
    project: Project, before: Any, text: str, after: Any
) -> None:
    if not (project.path / ".ai/tools/tool.sh").exists():
        shell_tool(project, 'printf "<%s>" "$RYE_PARAM_TEXT"\n')

    result = project.run("tool", {"before": before, "text": text, "after": after})

    assert (result.error, result.data["stdout"]) == (None, f"<{text}>")


def test_the_bash_tool_is_one_process_on_the_primitive(project: Project) -> None:
    result = project.run("rye/bash/bash", {"command": "echo hi | tr h H; echo $PPID $$ >&2"})

    assert result.data["stdout"] == "Hi\n"
    assert [element["item_id"] for element in result.chain] == [
        "rye/bash/bash",
        "rye/core/primitives/subprocess",
    ]


def test_the_bash_tool_runs_the_command_literally(project: Project) -> None:
    command = "x='{cwd} ${HOME:-none}'; echo \"$x\" '${RYE_BASH}' {stdin}"

    assert project.run("rye/bash/bash", {"command": command}).data["stdout"] == (
        "{cwd} ${HOME:-none} ${RYE_BASH} {stdin}\n"
    )


def test_the_bash_tool_takes_a_folder_and_stdin(project: Project) -> None:
    (project.path / "sub dir").mkdir()

    result = project.run("rye/bash/bash", {"command": "pwd; cat", "cwd": "sub dir", "stdin": "in"})

    assert result.data["stdout"] == f"{project.path}/sub dir\nin"
    assert project.run("rye/bash/bash", {"command": "pwd"}).data["stdout"] == f"{project.path}\n"


def test_the_bash_tool_ends_at_its_timeout(project: Project) -> None:
    result = project.run("rye/bash/bash", {"command": "echo begun; sleep 60", "timeout": 0.3})

    assert result.metadata["error_type"] == "ToolTimedOut"
    assert result.data["stdout"] == "begun\n"


def test_the_bash_tool_returns_the_exit_code(project: Project) -> None:
    result = project.run("rye/bash/bash", {"command": "echo no >&2; exit 3"})

    assert result.error == "'rye/bash/bash' ended with exit code 3: no"
    assert result.metadata["return_code"] == 3


def test_the_bash_tool_refuses_an_unknown_parameter(project: Project) -> None:
    assert project.run("rye/bash/bash", {"cmd": "ls"}).metadata["error_type"] == "ParameterError"
