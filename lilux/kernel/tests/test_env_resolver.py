"""EnvResolver: the order, the .env file, the interpreters, and that nothing is changed by it."""

import copy
import logging
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from found_interpreters import interpreter, program
from lilux.primitives.errors import ConfigurationError
from lilux.runtime.env_resolver import EnvResolver

# The order of the four steps


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


def test_without_arguments_it_is_a_copy_of_the_system_environment() -> None:
    before = dict(os.environ)
    env = EnvResolver().resolve()
    assert env == before
    env["LILUX_TEST_ONLY"] = "x"
    assert dict(os.environ) == before


def test_the_system_environment_is_read_at_each_call(monkeypatch: pytest.MonkeyPatch) -> None:
    resolver = EnvResolver()
    monkeypatch.setenv("LILUX_TEST_LATE", "seen")
    assert resolver.resolve()["LILUX_TEST_LATE"] == "seen"


def test_dotenv_can_be_left_out(project: Path) -> None:
    (project / ".env").write_text("A=1\n")
    assert EnvResolver(project, environ={}).resolve(include_dotenv=False) == {}
    assert EnvResolver(None, environ={}).resolve() == {}


def test_nothing_that_is_passed_in_is_changed(project: Path) -> None:
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


# Static variables


def test_variables_expand_in_order_and_see_earlier_ones() -> None:
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


# The .env file


def test_dotenv_grammar(project: Path) -> None:
    (project / ".env").write_text(
        "\ufeff# a comment\n"
        "PLAIN=value\n"
        "  INDENTED = spaced out  # remark\n"
        "SINGLE='a # b $X'\n"
        'DOUBLE="line\\nbreak \\"q\\""\n'
        "EMPTY=\n"
        "HASH=a#b\n"
        "EQUALS=a=b\n"
        "export EXPORTED=1\n"
        "\n\texport  ALSO=1\n"
        "exported=kept\n"
        "TWICE=1\nTWICE=2\n",
        encoding="utf-8",
    )
    assert EnvResolver(project, environ={}).resolve() == {
        "PLAIN": "value",
        "INDENTED": "spaced out",
        "SINGLE": "a # b $X",
        "DOUBLE": 'line\nbreak "q"',
        "EMPTY": "",
        "HASH": "a#b",
        "EQUALS": "a=b",
        "exported": "kept",
        "TWICE": "2",
    }


@pytest.mark.parametrize(
    "name",
    [
        "LD_PRELOAD",
        "LD_LIBRARY_PATH",
        "DYLD_INSERT_LIBRARIES",
        "BASH_ENV",
        "PYTHONSTARTUP",
        "NODE_OPTIONS",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_CONFIG_COUNT",
        "GIT_EXTERNAL_DIFF",
        "PYTHONPATH",
        "PYTHONHOME",
        "NODE_PATH",
        "PERL5OPT",
        "RUBYLIB",
        "UV_INDEX_URL",
        "PIP_FIND_LINKS",
        "PAGER",
        "BASH_FUNC_ls",
        "HOME",
        "XDG_CONFIG_HOME",
        "SHELL",
        "OPENSSL_CONF",
        "MAKEFLAGS",
    ],
)
def test_a_dotenv_cannot_set_a_loader_variable(
    name: str, project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".env").write_text(f"{name}=evil-payload\nKEPT=1\n")
    with caplog.at_level(logging.WARNING, logger="lilux"):
        env = EnvResolver(project, environ={name: "mine"}).resolve()
    assert env == {name: "mine", "KEPT": "1"}
    assert caplog.messages == [
        f"{project / '.env'}: {name} is ignored: it controls what processes load"
    ]


def test_a_dotenv_may_set_what_only_looks_like_a_loader_variable(project: Path) -> None:
    names = [
        "NODE_ENV",
        "ENV",
        "GIT_AUTHOR_NAME",
        "PYTHONUNBUFFERED",
        "RUBY_VERSION",
        "GITHUB_TOKEN",
        "HOME_PAGE",
        "SHELL_COLOR",
    ]
    (project / ".env").write_text("".join(f"{name}=value\n" for name in names))
    assert EnvResolver(project, environ={}).resolve() == dict.fromkeys(names, "value")


def test_rules_and_overrides_may_set_loader_variables(project: Path) -> None:
    env = EnvResolver(environ={}).resolve({"env": {"LD_PRELOAD": "a"}}, {"NODE_OPTIONS": "b"})
    assert env == {"LD_PRELOAD": "a", "NODE_OPTIONS": "b"}


def test_a_malformed_dotenv_line_is_named_by_number_and_not_shown(
    project: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (project / ".env").write_text(
        "A=1\n\nlonely-s3cret\nB-C=s3cret\nNUL=s3\0cret\nQ='s3cret\nZ=2\n"
    )
    with caplog.at_level(logging.WARNING, logger="lilux"):
        env = EnvResolver(project, environ={}).resolve()
    assert env == {"A": "1", "Z": "2"}
    source = project / ".env"
    assert caplog.messages == [
        f"{source}: line {n} is not KEY=value; ignored" for n in (3, 4, 5, 6)
    ]


def test_a_dotenv_that_is_too_large_is_refused(project: Path) -> None:
    path = project / ".env"
    path.write_bytes(b"A=1\n" + b"#" * (1024 * 1024))
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(project, environ={}).resolve()
    assert str(caught.value) == (
        f"{path} is larger than 1048576 bytes; keep only KEY=value lines in it"
    )


def test_a_dotenv_that_is_not_text_is_refused(project: Path) -> None:
    path = project / ".env"
    path.write_bytes(b"A=\xff\xfe\n")
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(project, environ={}).resolve()
    assert str(caught.value) == f"{path} is not UTF-8 text; fix or remove it"


def test_a_dotenv_that_cannot_be_opened_is_refused(project: Path) -> None:
    path = project / ".env"
    path.symlink_to(path)
    with pytest.raises(ConfigurationError) as caught:
        EnvResolver(project, environ={}).resolve()
    assert str(caught.value) == (
        f"{path} cannot be read: Too many levels of symbolic links; fix or remove it"
    )


def test_a_folder_or_fifo_named_dotenv_is_no_dotenv(project: Path) -> None:
    (project / ".env").mkdir()
    assert EnvResolver(project, environ={}).resolve() == {}
    (project / ".env").rmdir()
    os.mkfifo(project / ".env")
    assert EnvResolver(project, environ={}).resolve() == {}


# venv_python


@pytest.mark.parametrize("name", ["bin/python", "Scripts/python.exe", "bin/python3"])
def test_every_candidate_of_a_venv_is_found(name: str, project: Path) -> None:
    python = program(project / "env" / name)
    assert interpreter(project, {}, {"type": "venv_python", "venv_path": "env"}) == python


def test_the_first_candidate_of_a_venv_wins_and_its_symlink_is_kept(project: Path) -> None:
    program(project / ".venv/bin/python3")
    (project / ".venv/bin/python").symlink_to("python3")
    found = interpreter(project, {}, {"type": "venv_python"})
    assert found == str(project / ".venv/bin/python")


def test_a_candidate_that_cannot_be_executed_is_passed_over(project: Path) -> None:
    program(project / ".venv/bin/python", mode=0o644)
    (project / ".venv/Scripts/python.exe").mkdir(parents=True)
    python3 = program(project / ".venv/bin/python3")
    assert interpreter(project, {}, {"type": "venv_python"}) == python3


def test_a_venv_path_can_be_absolute_or_in_the_home_folder(
    project: Path, home: Path, tmp_path: Path
) -> None:
    elsewhere = program(tmp_path / "elsewhere/bin/python")
    rule = {"type": "venv_python", "venv_path": str(tmp_path / "elsewhere")}
    assert interpreter(None, {}, rule) == elsewhere
    in_home = program(home / "envs/a/bin/python")
    rule = {"type": "venv_python", "venv_path": "~/envs/a"}
    assert interpreter(project, {"HOME": str(home)}, rule) == in_home


def test_the_search_goes_project_then_user_then_system(project: Path, home: Path) -> None:
    rule = {"type": "venv_python", "search": ["project", "user", "system"], "fallback": "python3"}
    system = program(home / "sysbin/python")
    environ = {"HOME": str(home), "PATH": str(home / "sysbin")}
    assert interpreter(project, environ, rule) == system
    system3 = program(home / "sysbin/python3")
    assert interpreter(project, environ, rule) == system3
    user = program(home / ".venv/bin/python3")
    assert interpreter(project, environ, rule) == user
    own = program(project / ".venv/bin/python3")
    assert interpreter(project, environ, rule) == own
    assert interpreter(project, environ, {**rule, "search": ["system", "project"]}) == system3


def test_the_context_gives_the_roots_of_the_search(project: Path, tmp_path: Path) -> None:
    def found(search: list[str], **context: Path | str) -> str | None:
        config = {"interpreter": {"type": "venv_python", "var": "FOUND", "search": search}}
        return EnvResolver(project, environ={}).resolve(config, context=context).get("FOUND")

    for space in ("project", "user", "system"):
        root = tmp_path / f"{space}-root"
        python = program(root / ".venv/bin/python")
        assert found([space], **{space: root}) == python
        assert found([space], **{space: str(root)}) == python


def test_without_a_project_nothing_is_looked_for_in_the_current_folder(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program(project / ".venv/bin/python")
    program(project / "node_modules/.bin/node")
    program(project / "tool")
    monkeypatch.chdir(project)
    assert interpreter(None, {}, {"type": "venv_python"}) is None
    assert interpreter(None, {}, {"type": "node_modules"}) is None
    assert interpreter(None, {}, {"type": "system_binary", "binary": "./tool"}) is None
    for path in ("", ".", f":{os.defpath}", "bin:."):
        rule = {"type": "system_binary", "binary": "tool"}
        assert interpreter(None, {"PATH": path}, rule) is None


# node_modules, system_binary, fallback


def test_node_is_found_in_node_modules(project: Path) -> None:
    node = program(project / "node_modules/.bin/node")
    deep = program(project / "web/node_modules/.bin/node")
    assert interpreter(project, {}, {"type": "node_modules"}) == node
    for path in ("web", "web/node_modules", "web/node_modules/.bin"):
        rule = {"type": "node_modules", "search_paths": ["gone", path, "."]}
        assert interpreter(project, {}, rule) == deep


def test_a_system_binary_is_found_on_the_resolved_path(project: Path, tmp_path: Path) -> None:
    tool = program(tmp_path / "late/tool")
    program(tmp_path / "early/tool", mode=0o644)
    (project / ".env").write_text(f"PATH={tmp_path / 'early'}:{tmp_path / 'late'}\n")
    rule = {"type": "system_binary", "binary": "tool"}
    assert interpreter(project, {"PATH": "/nowhere"}, rule) == tool


def test_a_system_binary_can_be_a_path(project: Path) -> None:
    tool = program(project / "tools/own")
    assert interpreter(project, {}, {"type": "system_binary", "binary": "tools/own"}) == tool
    assert interpreter(project, {}, {"type": "system_binary", "binary": tool}) == tool


def test_looking_for_a_binary_starts_no_process(project: Path, tmp_path: Path) -> None:
    marker = tmp_path / "started"
    for name in ("which", "where", "tool", "pyenv"):
        path = tmp_path / "bin" / name
        program(path)
        path.write_text(f"#!/bin/sh\ntouch {marker}\n")
    environ = {"PATH": str(tmp_path / "bin"), "HOME": str(tmp_path)}
    assert interpreter(project, environ, {"type": "system_binary", "binary": "tool"})
    rule = {"type": "version_manager", "manager": "pyenv", "version": "3.11"}
    assert interpreter(project, environ, rule) is None
    assert not marker.exists()


@pytest.mark.parametrize(
    "rule",
    [
        {"type": "venv_python", "venv_path": "x" * 300},
        {"type": "node_modules", "search_paths": ["x" * 300]},
        {"type": "system_binary", "binary": "x" * 300},
        {"type": "system_binary", "binary": "./" + "x" * 300},
    ],
)
def test_a_place_that_the_system_refuses_to_look_at_has_no_interpreter(
    rule: dict[str, Any], project: Path
) -> None:
    environ = {"PATH": "/" + "y" * 300}
    assert interpreter(project, environ, {**rule, "fallback": "/fall/back"}) == "/fall/back"


def test_the_fallback_is_looked_up_on_path_or_kept(project: Path, tmp_path: Path) -> None:
    rule = {"type": "venv_python", "fallback": "python3"}
    assert interpreter(project, {"PATH": str(tmp_path / "bin")}, rule) == "python3"
    python = program(tmp_path / "bin/python3")
    assert interpreter(project, {"PATH": str(tmp_path / "bin")}, rule) == python
    assert interpreter(project, {}, {**rule, "fallback": "/opt/none"}) == "/opt/none"


def test_without_a_fallback_the_variable_stays_as_it_was(project: Path) -> None:
    assert interpreter(project, {}, {"type": "venv_python"}) is None
    assert interpreter(project, {"FOUND": "before"}, {"type": "venv_python"}) == "before"


# Malformed input


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
