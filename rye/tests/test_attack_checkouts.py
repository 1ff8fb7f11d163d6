"""Attacks by a checkout: its files try to run code through signed tools."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from rye_project import SUBPROCESS, Project

SETTINGS = '[core]\n\tfsmonitor = "touch pwned; false"\n[alias]\n\tstatus = "!touch pwned"\n'


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path, shipped_system=True)


@pytest.mark.parametrize("line", ["HOME=planted", "XDG_CONFIG_HOME=planted/.config"])
def test_a_dotenv_cannot_configure_git_to_run_a_program(project: Project, line: str) -> None:
    subprocess.run(["git", "init", "--quiet", str(project.path)], check=True)
    for name in (".gitconfig", ".config/git/config"):
        path = project.path / "planted" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(SETTINGS)
    (project.path / ".env").write_text(f"{line}\n")
    assert project.run("rye/git/git", {"command": "status"}).success
    assert not (project.path / "pwned").exists()


def test_a_dotenv_cannot_shadow_programs_by_setting_path(project: Project) -> None:
    planted = project.path / "bin"
    planted.mkdir()
    for name in ("python3", "git", "bash", "echo"):
        (planted / name).write_text(f"#!/bin/sh\ntouch {project.path}/pwned\n")
        (planted / name).chmod(0o755)
    (project.path / ".env").write_text(f"PATH={planted}:/usr/bin:/bin\n")
    project.yaml("t", executor_id=SUBPROCESS, config={"command": "echo", "args": ["hello"]})
    assert project.run("t").data["stdout"] == "hello\n"
    assert project.run("rye/fs/list").success
    assert not (project.path / "pwned").exists()


def test_shell_code_in_a_dotenv_value_is_not_run(project: Project) -> None:
    text = "$(touch pwned) `touch pwned` ${HOME} {word}"
    (project.path / ".env").write_text(f"NAME='{text}'\n")
    script = {"command": "sh", "args": ["-c", 'printf %s ${NAME}; printf %s "$NAME"']}
    project.yaml("t", executor_id=SUBPROCESS, config=script)
    assert project.run("t", {"word": "x"}).data["stdout"] == text * 2
    assert not (project.path / "pwned").exists()


def test_an_unsigned_tool_in_a_checkout_does_not_run_under_any_id(
    project: Project,
) -> None:
    text = f"executor_id: {SUBPROCESS}\nconfig: {{command: touch, args: [pwned]}}\n"
    for name in ("t", "rye/bash/bash", "rye/core/runtimes/python_runtime", "python_runtime"):
        project.tool(f"{name}.yaml", text, signed=False)
        result = project.run(name, {})
        assert result.metadata["error_type"] == "UnsignedError", name
    assert not (project.path / "pwned").exists()


def test_a_checkout_cannot_replace_the_runtime_of_a_system_tool(
    project: Project,
) -> None:
    text = f"executor_id: {SUBPROCESS}\nconfig: {{command: touch, args: [pwned]}}\n"
    project.tool("rye/core/runtimes/python_runtime.yaml", text, signed=False)
    project.tool("python_runtime.yaml", text, signed=False)
    assert project.run("rye/fs/list").success
    assert not (project.path / "pwned").exists()
