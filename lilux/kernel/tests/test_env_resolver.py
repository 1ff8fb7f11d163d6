"""EnvResolver: the order of its steps, variables, and malformed input."""

import copy
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from found_interpreters import interpreter, program
from lilux.primitives.errors import ConfigurationError
from lilux.runtime.env_resolver import EnvResolver


def test_each_step_overrides_the_ones_before(project: Path) -> None:
    (project / ".env").write_text("B=dotenv\nC=dotenv\nD=dotenv\n")
    resolver = EnvResolver(project, environ={"A": "system", "B": "system", "C": "system"})
    config = {"env": {"C": "config", "D": "config"}}
    assert resolver.resolve(config, {"D": "tool"}) == {
        "A": "system",
        "B": "dotenv",
        "C": "config",
        "D": "tool",
    }


def test_the_default_is_a_copy_of_the_system_environment() -> None:
    before = dict(os.environ)
    env = EnvResolver().resolve()
    assert env == before
    env["LILUX_TEST_ONLY"] = "x"
    assert dict(os.environ) == before


def test_the_system_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = EnvResolver()
    monkeypatch.setenv("LILUX_TEST_LATE", "seen")
    assert resolver.resolve()["LILUX_TEST_LATE"] == "seen"


def test_the_dotenv_file_can_be_skipped(project: Path) -> None:
    (project / ".env").write_text("A=1\n")
    assert EnvResolver(project, environ={}).resolve(include_dotenv=False) == {}
    assert EnvResolver(None, environ={}).resolve() == {}


def test_no_argument_is_changed(project: Path) -> None:
    (project / ".env").write_text("A=1\n")
    environ = {"PATH": "/nowhere"}
    config = {
        "interpreter": {"type": "system_binary", "binary": "x", "var": "V", "fallback": "y"},
        "env": {"W": "${V}"},
    }
    tool_env, context = {"T": "1"}, {"user": str(project)}
    given = copy.deepcopy((environ, config, tool_env, context))
    system = dict(os.environ)
    EnvResolver(project, environ=environ).resolve(config, tool_env, context=context)
    assert (environ, config, tool_env, context) == given
    assert dict(os.environ) == system


def test_variables_are_expanded_in_order() -> None:
    config = {
        "env": {
            "EARLY": "${LATE:-not yet}",
            "LATE": "1",
            "BOTH": "${LATE}/${EARLY}/${GONE}/${EMPTY:-filled}",
            "PATH": "/first:${PATH}",
        }
    }
    env = EnvResolver(environ={"PATH": "/bin", "EMPTY": ""}).resolve(config)
    assert env["EARLY"] == "not yet"
    assert env["BOTH"] == "1/not yet//filled"
    assert env["PATH"] == "/first:/bin"


def test_only_the_authors_text_is_a_template(project: Path) -> None:
    (project / ".env").write_text('FROM_FILE=${SECRET}\nQUOTED="${SECRET}"\n')
    environ = {"SECRET": "LEAK", "HOSTILE": "${SECRET} {x}"}
    config = {"env": {"A": "${HOSTILE}", "B": "{x} ${lower} $SECRET", "C": "${FROM_FILE}"}}
    env = EnvResolver(project, environ=environ).resolve(config, {"T": "${SECRET}"})
    assert env["FROM_FILE"] == env["QUOTED"] == env["C"] == env["T"] == "${SECRET}"
    assert env["A"] == "${SECRET} {x}"
    assert env["B"] == "{x} ${lower} $SECRET"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [({}, "fallback_value"), ({"OTHER_VAR": ""}, "fallback_value"), ({"OTHER_VAR": "own"}, "own")],
)
def test_the_documented_example_of_static_variables(
    project: Path, environ: dict[str, str], expected: str
) -> None:
    python = program(project / ".venv/bin/python")
    documented = {
        "env": {
            "PYTHONUNBUFFERED": "1",
            "PROJECT_VENV_PYTHON": "${RYE_PYTHON}",
            "MY_VAR": "${OTHER_VAR:-fallback_value}",
        }
    }
    rule = {"type": "venv_python", "venv_path": ".venv", "var": "RYE_PYTHON"}
    resolver = EnvResolver(project, environ=environ)
    assert resolver.resolve({"interpreter": rule, **documented}) == {
        **environ,
        "RYE_PYTHON": python,
        "PYTHONUNBUFFERED": "1",
        "PROJECT_VENV_PYTHON": python,
        "MY_VAR": expected,
    }
    assert resolver.resolve(documented)["PROJECT_VENV_PYTHON"] == ""


@pytest.mark.parametrize(
    ("config", "expected"),
    [
        ([], "env_config: expected a mapping, got list"),
        ({"envs": {}}, "env_config.envs: unknown field; expected one of interpreter, env"),
        ({1: {}}, "env_config: expected names that are strings, got int; quote them"),
        ({"env": ["A=1"]}, "env_config.env: expected a mapping, got list"),
        ({"env": {"A": 1}}, "env_config.env.A: expected a string, got int; quote it"),
        ({"env": {"A": None}}, "env_config.env.A: expected a string, got NoneType; quote it"),
        ({"env": {"A": "x\0y"}}, "env_config.env.A: contains a NUL character; remove it"),
        (
            {"env": {"A=B": "x"}},
            "env_config.env: 'A=B' is not a valid variable name; choose another",
        ),
        (
            {"env": {"": "x"}},
            "env_config.env: '' is not a valid variable name; choose another",
        ),
        ({"interpreter": "python"}, "env_config.interpreter: expected a mapping, got str"),
    ],
)
def test_a_malformed_env_config_is_refused_by_field(config: Any, expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(environ={}).resolve(config)
    assert str(caught.value) == expected


def managed(manager: str, version: str | None = None, **more: Any) -> dict[str, Any]:
    return {"type": "version_manager", "manager": manager, "version": version, **more}


TYPES = "venv_python, node_modules, system_binary, version_manager"


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ({}, f"type: expected one of {TYPES}"),
        ({"type": "conda"}, f"type: expected one of {TYPES}"),
        ({"type": ["venv_python"]}, f"type: expected one of {TYPES}"),
        (
            {"type": "venv_python", "var": None},
            "var: expected a string, got NoneType; quote it",
        ),
        (
            {"type": "venv_python", "var": "A=B"},
            "var: 'A=B' is not a valid variable name; choose another",
        ),
        (
            {"type": "venv_python", "binary": "x"},
            "binary: unknown field; expected one of type, var, fallback, venv_path, search",
        ),
        ({"type": "venv_python", "fallback": ""}, "fallback: expected a string, got an empty one"),
        (
            {"type": "venv_python", "venv_path": 3},
            "venv_path: expected a string, got int; quote it",
        ),
        ({"type": "venv_python", "search": "project"}, "search: expected a list, got str"),
        (
            {"type": "venv_python", "search": ["global"]},
            "search: expected one of project, user, system",
        ),
        (
            {"type": "node_modules", "search_paths": [3]},
            "search_paths[0]: expected a string, got int; quote it",
        ),
        ({"type": "system_binary"}, "binary: missing; system_binary requires it"),
        ({"type": "version_manager"}, "manager: missing; version_manager requires it"),
        (managed("sdkman"), "manager: expected one of pyenv, nvm, rbenv, asdf, mise"),
        (managed("pyenv", "../x"), "version: '../x' is not a version; write one such as '3.11'"),
        (
            managed("asdf"),
            "tool: missing; asdf manages several tools; name one, such as 'python'",
        ),
        (
            managed("mise", tool="../x"),
            "tool: '../x' is not the name of a tool; name one, such as 'python'",
        ),
        (
            managed("pyenv", tool="ruby"),
            "tool: pyenv manages python; remove the field or choose another manager",
        ),
    ],
)
def test_a_malformed_interpreter_is_refused_by_field(rule: dict[str, Any], expected: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        interpreter(None, {"HOME": "/nowhere"}, rule)
    assert str(caught.value) == f"env_config.interpreter.{expected}"


def test_an_interpreter_must_name_its_variable() -> None:
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(environ={}).resolve({"interpreter": {"type": "venv_python"}})
    assert str(caught.value) == "env_config.interpreter.var: missing; name the variable to set"


def test_malformed_overrides_and_context_are_refused_without_their_values() -> None:
    overrides: Any = {"TOKEN": ["s3cret"]}
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(environ={}).resolve(tool_env=overrides)
    assert str(caught.value) == "tool_env.TOKEN: expected a string, got list; quote it"
    wrong: Any = {"user": 3}
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(environ={}).resolve(context=wrong)
    assert str(caught.value) == "context.user: expected a path, got int"
    wrong = ["user"]
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(environ={}).resolve(context=wrong)
    assert str(caught.value) == "context: expected a mapping, got list"


def test_importing_the_resolver_loads_no_dotenv_and_no_subprocess() -> None:
    code = (
        "import sys, lilux.runtime.env_resolver;"
        "print([m for m in ('dotenv', 'subprocess', 'tomllib', 'asyncio') if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
