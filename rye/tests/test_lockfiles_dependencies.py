"""The dependencies of a tool are pinned with it."""

import json
import shutil
from pathlib import Path

import pytest
from rye_project import SUBPROCESS, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A tool with a signed helper beside it, verified by its runtime and locked by a first run."""
    project = Project(tmp_path)
    project.yaml(
        "runtimes/cat",
        executor_id=SUBPROCESS,
        space="system",
        config={"command": "/bin/cat", "args": ["{tool_dir}/helper.py"]},
        anchor={"mode": "always", "root": "tool_dir"},
        verify_deps={"scope": "anchor", "extensions": [".py"]},
    )
    project.yaml("kit/tool", executor_id="runtimes/cat")
    project.tool("kit/helper.py", "print('one')\n")
    first = project.run("kit/tool")
    assert first.success, first.error
    return project


def pinned(project: Project) -> dict[str, str]:
    deps: dict[str, str] = json.loads(project.lockfile("kit/tool").read_text())["verified_deps"]
    return deps


def test_verified_deps_are_the_dependencies_of_the_anchor(project: Project) -> None:
    assert list(pinned(project)) == ["helper.py"]
    assert project.run("kit/tool").success
    assert project.run("kit/tool", dry_run=True).data["dependencies"] == pinned(project)


def test_a_dependency_changed_and_signed_again_does_not_match_the_lock(project: Project) -> None:
    before = pinned(project)["helper.py"]
    project.tool("kit/helper.py", "print('two')\n")
    result = project.run("kit/tool")
    assert result.metadata["error_type"] == "LockUpgradeError"
    assert result.error is not None
    assert result.error.startswith(
        f"lockfile {project.lockfile('kit/tool')}: the dependency helper.py is pinned as {before}, "
        "but is "
    )
    assert result.error.endswith("; accept it with: rye lock --update kit/tool")


def test_a_dependency_changed_and_not_signed_is_refused(project: Project) -> None:
    helper = project.path / ".ai" / "tools" / "kit" / "helper.py"
    helper.write_text(helper.read_text().replace("one", "two"))
    assert project.run("kit/tool").metadata["error_type"] == "ChangedError"


def test_a_new_dependency_does_not_match_the_lock(project: Project) -> None:
    project.tool("kit/extra.py", "print('extra')\n")
    result = project.run("kit/tool")
    assert result.error == (
        f"lockfile {project.lockfile('kit/tool')}: the dependency extra.py is not pinned; "
        "accept it with: rye lock --update kit/tool"
    )


def test_a_missing_dependency_does_not_match_the_lock(project: Project) -> None:
    (project.path / ".ai" / "tools" / "kit" / "helper.py").unlink()
    result = project.run("kit/tool")
    assert result.error == (
        f"lockfile {project.lockfile('kit/tool')}: the pinned dependency helper.py is missing; "
        "accept it with: rye lock --update kit/tool"
    )


def project_with_a_library(root: Path, file: str) -> tuple[Project, Path]:
    """A tool whose runtime, also in the project, runs a file of its library; returns that file."""
    project = Project(root)
    project.yaml(
        "runtimes/mine",
        executor_id=SUBPROCESS,
        config={"command": "/bin/sh", "args": [f"{{runtime_lib}}/{file}"]},
        anchor={"mode": "always", "root": "tool_dir", "lib": "lib"},
        verify_deps={"scope": "anchor"},
    )
    project.yaml("pkg/tool", executor_id="runtimes/mine")
    return project, project.tool(f"runtimes/lib/{file}", "echo verified\n")


def test_a_signed_copy_cannot_replace_a_changed_file_of_the_library(tmp_path: Path) -> None:
    """A checkout may contain folders of any name, even the library's name in lockfiles."""
    project, core = project_with_a_library(tmp_path, "core.sh")
    assert project.run("pkg/tool").data["stdout"] == "verified\n"
    copy = project.path / ".ai/tools/pkg/{runtime_lib}/core.sh"
    copy.parent.mkdir()
    shutil.copy(core, copy)
    core.write_text("echo planted\n")
    result = project.run("pkg/tool")
    assert result.metadata["error_type"] == "AnchorError"
    assert result.error == (
        f"{copy} has the name of a file in the runtime's library or in the project; "
        "rename its folder"
    )


@pytest.mark.parametrize("name", ["core", "core.inc", "core.sh"])
def test_the_library_is_verified_whatever_its_files_are_called(tmp_path: Path, name: str) -> None:
    project, core = project_with_a_library(tmp_path, name)
    for harmless in (".gitignore", "README.md", "core.sh~"):
        core.with_name(harmless).write_text("x")
    result = project.run("pkg/tool", use_lockfile=False)
    assert result.success, result.error
    core.write_text("echo planted\n")
    result = project.run("pkg/tool", use_lockfile=False)
    assert result.error == (
        f"pkg/tool → {{runtime_lib}}/{name} is not signed: {core}; read the file, then sign it "
        f"with: rye sign {core}"
    )
