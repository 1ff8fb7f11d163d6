"""Attacks by a caller: every parameter is passed as data or refused."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from rye.executor.run.result import ExecutionResult
from rye_project import SUBPROCESS, Project

SECRET = "s3cr3t-of-the-environment"
HOSTILE = {
    "a template": "${SECRET} ${SECRET:-x} {env} {params_json} {tool_path} {{word}}",
    "a shell fragment": "$(touch pwned) `touch pwned`; touch pwned & | > pwned && touch pwned",
    "quotes": "'\"'\"\\' \\\" '' \"\" $'\\x27' \\",
    "an option": "--output=pwned",
    "the end of options": "--",
    "a short option": "-n",
    "a format": "%s%n%d%x \\c \\0101",
    "lines": "one\ntwo\r\nthree\n",
    "an assignment": "PATH=/nowhere LD_PRELOAD=/x",
    "a glob": "* ? [a-z] ~ ~root !! #",
    "a terminal sequence": "\x1b]0;pwned\x07\x1b[2J\u202e",
    "other scripts": "é \U0001d54f",
    "an expression": "{__import__('os').system('touch pwned')}",
}
UNPASSABLE = {
    "a NUL": ("a\0b", "NUL"),
    "a lone surrogate": ("a\ud800b", "surrogate"),
}
PYTHON = """__version__ = "1.0.0"
__executor_id__ = "rye/core/runtimes/python_runtime"


def main(**params):
    import sys
    return {"params": params, "argv": sys.argv[1:]}
"""
BASH = """# /// rye
# version = "1.0.0"
# executor_id = "rye/core/runtimes/bash_runtime"
# ///
printf '%s' "$RYE_PARAM_WORD"
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Project:
    project = Project(
        tmp_path_factory.mktemp("world"), shipped_system=True, environ={"SECRET": SECRET}
    )
    argv = {"command": "/usr/bin/printf", "args": ["%s", "{word}"]}
    project.yaml("argv", executor_id=SUBPROCESS, config=argv)
    project.yaml("inside", executor_id=SUBPROCESS, config={**argv, "args": ["%s", "--x={word}"]})
    script = {"command": "sh", "args": ["-c", 'printf %s "$1$1"', "sh", "{word}"]}
    project.yaml("shell", executor_id=SUBPROCESS, config=script)
    stdin = {"command": "cat", "input_data": "{word}"}
    project.yaml("stdin", executor_id=SUBPROCESS, config=stdin)
    variable = {"command": "sh", "args": ["-c", 'printf %s "$WORD"'], "env": {"WORD": "{word}"}}
    project.yaml("variable", executor_id=SUBPROCESS, config=variable)
    project.tool("python.py", PYTHON)
    project.tool("bash.sh", BASH)
    return project


def outputs(project: Project, tool: str, words: dict[str, str]) -> dict[str, str]:
    """Return the output of the tool for each word, from calls in one event loop."""

    async def calls() -> dict[str, ExecutionResult]:
        async with project.executor() as executor:
            return {name: await executor.execute(tool, {"word": words[name]}) for name in words}

    results = asyncio.run(calls())
    for name, result in results.items():
        assert result.success, f"{name}: {result.error}"
    return {name: result.data["stdout"] for name, result in results.items()}


@pytest.mark.parametrize(
    ("tool", "expected"),
    [
        ("argv", "{}"),
        ("inside", "--x={}"),
        ("shell", "{0}{0}"),
        ("stdin", "{}"),
        ("variable", "{}"),
    ],
)
def test_hostile_parameters_are_passed_as_plain_text(
    project: Project, tool: str, expected: str
) -> None:
    assert outputs(project, tool, HOSTILE) == {
        name: expected.format(word) for name, word in HOSTILE.items()
    }
    assert not (project.path / "pwned").exists()


def test_hostile_parameters_reach_a_python_tool_but_not_its_command_line(
    project: Project,
) -> None:
    result = project.run("python", dict(HOSTILE))
    assert result.data == {"params": HOSTILE, "argv": []}


def test_hostile_parameters_reach_a_bash_tool_unchanged(project: Project) -> None:
    assert outputs(project, "bash", HOSTILE) == HOSTILE
    assert not (project.path / "pwned").exists()


@pytest.mark.parametrize("tool", ["argv", "inside", "shell", "variable"])
@pytest.mark.parametrize("kind", UNPASSABLE)
def test_a_nul_or_lone_surrogate_in_a_parameter_is_refused(
    project: Project, tool: str, kind: str
) -> None:
    word, reason = UNPASSABLE[kind]
    result = project.run(tool, {"word": word})
    assert not result.success
    assert result.metadata["error_type"] in ("ConfigTemplateError", "ParameterError")
    assert reason in str(result.error)
    str(result.error).encode()


NUMBERS = {
    "400 digits": 10**400,
    "5000 digits": -(10**5000),
    "65 bits": 2**64,
    "infinity": float("inf"),
    "not a number": float("nan"),
    "the largest": 1e308,
}


@pytest.mark.parametrize("number", NUMBERS.values(), ids=NUMBERS)
def test_a_huge_number_is_passed_exactly_or_refused(project: Project, number: float) -> None:
    for tool in ("argv", "stdin", "python"):
        result = project.run(tool, {"word": number})
        if not result.success:
            assert result.metadata["error_type"] in ("ConfigTemplateError", "ParameterError")
            continue
        returned = result.data["params"]["word"] if tool == "python" else result.data
        received = returned["stdout"] if isinstance(returned, dict) else returned
        assert json.loads(str(received)) == number


@pytest.mark.parametrize("name", ["command", "args", "env", "cwd", "timeout", "input_data"])
def test_a_parameter_named_like_a_setting_does_not_configure_the_process(
    project: Project, name: str
) -> None:
    hostile: dict[str, Any] = {"command": "/bin/false", "args": ["x"], "env": {"A": "b"}}
    hostile |= {"cwd": "/nonexistent", "timeout": 0.000001, "input_data": "x"}
    result = project.run("argv", {"word": "fine", name: hostile[name]})
    assert result.data["stdout"] == "fine"


@pytest.mark.parametrize("setting", ["cwd", "stdout_file", "stderr_file"])
@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("{project_path}/out/{x}", ["../evil", "..", "a/../../evil", "./../evil", "a//../evil"]),
        ("out/.{x}", [".", "./../evil", "./evil"]),
        ("{x}/my out", ["/evil", "..", "../evil", "a/../../evil"]),
        ("{x}{x}/out", ["."]),
    ],
)
def test_a_parameter_cannot_lead_a_file_or_the_working_directory_elsewhere(
    tmp_path: Path, setting: str, text: str, values: list[str]
) -> None:
    project = Project(tmp_path)
    project.yaml("t", executor_id=SUBPROCESS, config={"command": "pwd", setting: text})
    place = project.path / text.removeprefix("{project_path}/").replace("{x}", "a b/c")
    (place if setting == "cwd" else place.parent).mkdir(parents=True)
    result = project.run("t", {"x": "a b/c"})
    assert result.data["stdout"] == f"{place}\n" if setting == "cwd" else place.exists()
    before = sorted(project.path.rglob("*"))
    for value in values:
        assert str(project.run("t", {"x": value}).error).startswith(
            "invalid parameters for 't': parameters.x: expected a relative path without .., "
            "because it is part of a longer text"
        )
    assert sorted(project.path.rglob("*")) == before
    assert not list(tmp_path.rglob("evil"))


def test_deeply_nested_parameters_are_refused(project: Project) -> None:
    deep: dict[str, Any] = {}
    for _ in range(100_000):
        deep = {"a": deep}
    result = project.run("stdin", {"word": deep})
    assert result.metadata["error_type"] == "ParameterError"
    assert "nested deeper than 128 levels" in str(result.error)


TRAVERSAL = [
    "../evil", "..", "a/../../evil", "/etc/passwd", "./argv", "argv/", "//argv", "a//b", "..\\evil",
    "%2e%2e/evil", "argv\0", "argv\n", ".hidden", "~/evil", "C:/evil", "argv.yaml", "", " ",
    "a/./b",
    "../.ai/tools/argv", "\uff0e\uff0e/evil", "\u2024\u2024/evil", "argv\u202e", "-argv",
    "x" * 5000,
]  # fmt: skip


@pytest.mark.parametrize("item_id", TRAVERSAL)
def test_path_traversal_in_an_item_id_is_refused(project: Project, item_id: str) -> None:
    (project.path.parent / "evil.yaml").write_bytes(
        (project.path / ".ai/tools/argv.yaml").read_bytes()
    )
    result = project.run(item_id, {"word": "x"})
    assert result.metadata["error_type"] in ("ItemIdError", "ItemNotFoundError")
    assert str(result.error).isprintable()


@pytest.mark.parametrize("item_id", ["../evil", "/etc/passwd", "..", "a/../../evil"])
def test_path_traversal_in_an_executor_id_is_refused(tmp_path: Path, item_id: str) -> None:
    project = Project(tmp_path)
    project.yaml("t", executor_id=item_id)
    result = project.run("t")
    assert result.metadata["error_type"] == "ItemFormatError"
    assert "expected an item id in 'executor_id'" in str(result.error)
