"""Attack: a signed older version of a pinned tool is put back; and what updates leave behind."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path

import pytest
from rye.executor.run.result import ExecutionResult
from rye_console import Console
from rye_project import Project, refused
from versioned_tool import TOOL, add, leave_behind, lockfiles, with_a_pinned_tool


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return with_a_pinned_tool(tmp_path)


@pytest.mark.parametrize("frozen", [False, True])
def test_a_signed_older_version_does_not_run_in_place_of_the_pinned_one(
    console: Console, frozen: bool
) -> None:
    project = console.project
    path = add(project, "1.0.0")
    assert refused(project.run(TOOL, frozen=frozen), "LockDowngradeError") == (
        f"lockfile {project.lockfile(TOOL, '1.1.0')}: '{TOOL}' 1.0.0 is older than the pinned "
        f"1.1.0 ({path}, validly signed): a downgrade; restore the pinned version, or accept the "
        f"older one with: rye lock --update {TOOL}"
    )
    assert lockfiles(project) == ["hello@1.1.0.lock.json"]


def test_a_warm_executor_refuses_a_signed_older_version(console: Console) -> None:
    async def call() -> list[ExecutionResult]:
        async with console.project.executor() as executor:
            first = await executor.execute(TOOL)
            add(console.project, "1.0.0")
            return [first, await executor.execute(TOOL)]

    first, second = asyncio.run(call())
    assert first.success, first.error
    refused(second, "LockDowngradeError")


def test_the_check_of_all_locks_reports_a_downgrade(console: Console) -> None:
    add(console.project, "1.0.0")
    (done,) = console.json("lock", "--check")
    assert (done["state"], done["error_type"]) == ("mismatch", "LockDowngradeError")
    assert f"'{TOOL}' 1.0.0 is older than the pinned 1.1.0" in done["error"]
    assert console("lock", "--check").code == 5


def test_pinning_again_does_not_accept_a_downgrade(console: Console) -> None:
    add(console.project, "1.0.0")
    done = console("lock", TOOL)
    assert done.code == 5
    assert "is older than the pinned 1.1.0" in done.stderr


def test_a_downgraded_runtime_is_named_with_its_versions(tmp_path: Path) -> None:
    project = Project(tmp_path)

    def runtime(version: str) -> None:
        project.yaml(
            "runtimes/echo",
            version=version,
            tool_type="runtime",
            executor_id="rye/core/primitives/subprocess",
            config={"command": "/bin/echo", "args": [version]},
        )

    runtime("2.0.0")
    project.yaml(TOOL, executor_id="runtimes/echo")
    assert project.run(TOOL).success
    runtime("1.9.0")
    message = refused(project.run(TOOL), "LockDowngradeError")
    assert "'runtimes/echo' 1.9.0 is older than the pinned 2.0.0" in message


@pytest.mark.parametrize("frozen", [False, True])
def test_two_lockfiles_for_one_tool_are_an_error_that_names_them(
    console: Console, frozen: bool
) -> None:
    """As the attack left them behind, or an update that was killed half-way."""
    project = console.project
    old, new = leave_behind(console)
    assert refused(project.run(TOOL, frozen=frozen), "LockLeftoverError") == (
        f"'{TOOL}' has 2 lockfiles, but only one can be current: {old} and {new}; remove the "
        "outdated ones; or review the tool, and replace all of them with: "
        f"rye lock --update {TOOL}"
    )
    assert console("run", TOOL).code == 5


def test_the_check_of_all_locks_reports_leftovers(console: Console) -> None:
    leave_behind(console)
    assert [one["state"] for one in console.json("lock", "--check")] == ["leftover", "leftover"]
    done = console("lock", "--check")
    assert done.code == 5
    assert done.stderr.count("has 2 lockfiles, but only one can be current") == 1


def test_a_renamed_lockfile_does_not_pin_another_version(console: Console) -> None:
    """Even if the version inside is edited to match the name."""
    old, new = (console.project.lockfile(TOOL, version) for version in ("1.1.0", "9"))
    new.write_text(old.read_text().replace('"1.1.0"', '"9"'))
    old.unlink()
    message = refused(console.project.run(TOOL), "LockCorruptError")
    assert message.startswith(f"lockfile {new} pins '{TOOL}' 9, but ")


def test_an_update_that_is_killed_half_way_stops_the_tool(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = console.project
    add(project, "1.0.0")
    pid = os.fork()
    if pid == 0:
        monkeypatch.setattr(Path, "unlink", lambda *_, **__: os.kill(os.getpid(), signal.SIGKILL))
        console("lock", "--update", TOOL)
        os._exit(0)
    _, status = os.waitpid(pid, 0)
    assert os.WTERMSIG(status) == signal.SIGKILL
    refused(project.run(TOOL), "LockLeftoverError")
    assert console("lock", "--update", TOOL).code == 0
    assert project.run(TOOL).success
