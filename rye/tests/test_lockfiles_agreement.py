"""``rye lock``, ``rye chain`` and a call refuse the same tools, with the same error."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from rye.errors import RyeError
from rye.executor.inspection import inspect_chain
from rye.executor.pinning import Locking
from rye.executor.run.blocking import execute_blocking
from rye_project import SUBPROCESS, Project

TOOL = "kit/tool"


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.yaml(
        "runtimes/true",
        executor_id=SUBPROCESS,
        config={"command": "/bin/true"},
        verify_deps={"scope": "tool_dir", "extensions": [".py"]},
    )
    project.yaml(TOOL, executor_id="runtimes/true")
    project.tool("kit/helper.py", "x = 1\n")
    return project


def pin(project: Project) -> None:
    Locking(project.context).pin(TOOL)


def change_the_tool(project: Project) -> None:
    path = project.path / ".ai/tools/kit/tool.yaml"
    path.write_text(path.read_text() + "# changed\n")


def change_a_dependency(project: Project) -> None:
    path = project.path / ".ai/tools/kit/helper.py"
    path.write_text(path.read_text() + "y = 2\n")


def add_an_unsigned_dependency(project: Project) -> None:
    project.tool("kit/new.py", "x = 1\n", signed=False)


def link_a_dependency_out(project: Project) -> None:
    (project.path / ".ai/tools/kit/link.py").symlink_to("/etc/passwd")


def name_a_missing_executor(project: Project) -> None:
    project.yaml(TOOL, executor_id="runtimes/missing")


def close_a_cycle(project: Project) -> None:
    project.yaml("runtimes/true", executor_id=TOOL)


def require_a_later_version(project: Project) -> None:
    project.yaml(
        "runtimes/true", executor_id=SUBPROCESS, child_constraints={"min_version": "2.0.0"}
    )


def break_the_anchor(project: Project) -> None:
    project.yaml(TOOL, executor_id="runtimes/true", anchor={"lib": "missing"})


def upgrade_a_pinned_tool(project: Project) -> None:
    pin(project)
    project.yaml(TOOL, executor_id="runtimes/true", description="new")


def tamper_with_a_pinned_runtime(project: Project) -> None:
    pin(project)
    path = project.path / ".ai/tools/runtimes/true.yaml"
    path.write_text(path.read_text() + "# changed\n")


def add_a_dependency_to_a_pinned_tool(project: Project) -> None:
    pin(project)
    project.tool("kit/new.py", "x = 1\n")


def damage_the_lockfile(project: Project) -> None:
    pin(project)
    project.lockfile(TOOL).write_text("{")


@pytest.mark.parametrize(
    ("prepare", "error_type"),
    [
        (change_the_tool, "ChangedError"),
        (change_a_dependency, "ChangedError"),
        (add_an_unsigned_dependency, "UnsignedError"),
        (link_a_dependency_out, "AnchorError"),
        (name_a_missing_executor, "MissingExecutorError"),
        (close_a_cycle, "ChainCycleError"),
        (require_a_later_version, "ChainValidationError"),
        (break_the_anchor, "AnchorError"),
        (upgrade_a_pinned_tool, "LockUpgradeError"),
        (tamper_with_a_pinned_runtime, "LockTamperedError"),
        (add_a_dependency_to_a_pinned_tool, "LockUpgradeError"),
        (damage_the_lockfile, "LockCorruptError"),
    ],
    ids=lambda value: getattr(value, "__name__", None),
)
def test_what_a_call_refuses_is_not_pinned(
    project: Project, prepare: Callable[[Project], None], error_type: str
) -> None:
    prepare(project)
    called = project.run(TOOL)
    blocking = execute_blocking(TOOL, context=project.context)
    with pytest.raises(RyeError) as refused:
        Locking(project.context).pin(TOOL)
    inspected = inspect_chain(TOOL, project.context).error

    assert called.metadata["error_type"] == error_type
    assert {called.error, blocking.error, str(refused.value), str(inspected)} == {called.error}
    assert type(refused.value).__name__ == type(inspected).__name__ == error_type
