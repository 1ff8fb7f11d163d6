"""The files that a tool brings along are pinned with it."""

import json
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


def test_verified_deps_are_filled_with_what_the_anchor_verified(project: Project) -> None:
    assert list(pinned(project)) == ["helper.py"]
    assert project.run("kit/tool").success
    assert project.run("kit/tool", dry_run=True).data["dependencies"] == pinned(project)


def test_a_dependency_that_was_changed_and_signed_again_breaks_the_lock(project: Project) -> None:
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


def test_a_dependency_that_was_changed_and_not_signed_is_refused(project: Project) -> None:
    helper = project.path / ".ai" / "tools" / "kit" / "helper.py"
    helper.write_text(helper.read_text().replace("one", "two"))
    assert project.run("kit/tool").metadata["error_type"] == "ChangedError"


def test_a_dependency_that_appeared_breaks_the_lock(project: Project) -> None:
    project.tool("kit/extra.py", "print('extra')\n")
    result = project.run("kit/tool")
    assert result.error == (
        f"lockfile {project.lockfile('kit/tool')}: the dependency extra.py is not pinned; "
        "accept it with: rye lock --update kit/tool"
    )


def test_a_dependency_that_is_gone_breaks_the_lock(project: Project) -> None:
    (project.path / ".ai" / "tools" / "kit" / "helper.py").unlink()
    result = project.run("kit/tool")
    assert result.error == (
        f"lockfile {project.lockfile('kit/tool')}: the pinned dependency helper.py is gone; "
        "accept it with: rye lock --update kit/tool"
    )
