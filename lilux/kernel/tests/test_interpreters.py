"""Interpreters: virtual environments, node_modules, programs on PATH, and the fallback."""

import os
from pathlib import Path
from typing import Any

import pytest
from found_interpreters import interpreter, program
from lilux.runtime.env_resolver import EnvResolver


@pytest.mark.parametrize("name", ["bin/python", "Scripts/python.exe", "bin/python3"])
def test_every_candidate_of_a_venv_is_found(name: str, project: Path) -> None:
    python = program(project / "env" / name)
    assert interpreter(project, {}, {"type": "venv_python", "venv_path": "env"}) == python


def test_the_first_candidate_of_a_venv_is_used_and_its_symlink_kept(project: Path) -> None:
    program(project / ".venv/bin/python3")
    (project / ".venv/bin/python").symlink_to("python3")
    found = interpreter(project, {}, {"type": "venv_python"})
    assert found == str(project / ".venv/bin/python")


def test_a_candidate_that_is_not_executable_is_skipped(project: Path) -> None:
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


def test_the_search_order_is_project_user_system(project: Path, home: Path) -> None:
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


def test_without_a_project_the_current_folder_is_not_searched(
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


def test_a_search_starts_no_process(project: Path, tmp_path: Path) -> None:
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
def test_an_inaccessible_path_has_no_interpreter(rule: dict[str, Any], project: Path) -> None:
    environ = {"PATH": "/" + "y" * 300}
    assert interpreter(project, environ, {**rule, "fallback": "/fall/back"}) == "/fall/back"


def test_the_fallback_is_searched_on_path_or_kept(project: Path, tmp_path: Path) -> None:
    rule = {"type": "venv_python", "fallback": "python3"}
    assert interpreter(project, {"PATH": str(tmp_path / "bin")}, rule) == "python3"
    python = program(tmp_path / "bin/python3")
    assert interpreter(project, {"PATH": str(tmp_path / "bin")}, rule) == python
    assert interpreter(project, {}, {**rule, "fallback": "/opt/none"}) == "/opt/none"


def test_without_a_fallback_the_variable_is_unchanged(project: Path) -> None:
    assert interpreter(project, {}, {"type": "venv_python"}) is None
    assert interpreter(project, {"FOUND": "before"}, {"type": "venv_python"}) == "before"
