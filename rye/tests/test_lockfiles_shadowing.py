"""A file that shadows a pinned tool, with another version or by a short id."""

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import pytest
from rye.executor.chain.snapshot import Library
from rye.executor.locks.file import LockfileResolver
from rye.executor.run.result import ExecutionResult
from rye.spaces.folders import is_settled
from rye_project import SUBPROCESS, Project, refused


@pytest.fixture
def project(tmp_path: Path) -> Project:
    """A tool of the system, locked as 1.0.0 by a first run."""
    project = Project(tmp_path)
    project.command("tools/hello", "/bin/echo", "system", space="system")
    first = project.run("tools/hello")
    assert first.success, first.error
    return project


def shadow(project: Project) -> Path:
    return project.command("tools/hello", "/bin/echo", "shadow", version="2.0.0")


def integrity_of(project: Project, item_id: str) -> str:
    snapshot = Library(project.context).snapshot()
    return snapshot.verdict(snapshot.resolve(item_id)).content_hash


@pytest.mark.parametrize("frozen", [False, True])
def test_a_shadow_with_another_version_cannot_bypass_the_lock(
    project: Project, frozen: bool
) -> None:
    pinned = integrity_of(project, "tools/hello")
    path = shadow(project)
    found = integrity_of(project, "tools/hello")
    assert refused(project.run("tools/hello", frozen=frozen), "LockShadowedError") == (
        f"lockfile {project.lockfile('tools/hello')}: 'tools/hello' is pinned in the system "
        f"space ({pinned}), but {path} of the project space ({found}) now takes its place; "
        "remove the file that shadows it, or accept it with: rye lock --update tools/hello"
    )
    assert not project.lockfile("tools/hello", "2.0.0").exists()


def test_a_warm_executor_refuses_a_shadow_with_another_version(project: Project) -> None:
    async def call() -> list[ExecutionResult]:
        async with project.executor() as executor:
            first = await executor.execute("tools/hello")
            shadow(project)
            return [first, await executor.execute("tools/hello")]

    first, second = asyncio.run(call())
    assert first.success, first.error
    refused(second, "LockShadowedError")


def test_both_fixes_of_a_shadowed_lock_work(project: Project) -> None:
    shadow(project).unlink()
    assert project.run("tools/hello").data["stdout"] == "system\n"
    shadow(project)
    project.lockfile("tools/hello").unlink()
    assert project.run("tools/hello").data["stdout"] == "shadow\n"
    assert project.lockfile("tools/hello", "2.0.0").is_file()


def test_another_version_cannot_bypass_a_lockfile_of_the_user(project: Project) -> None:
    place = project.user / ".ai" / "lockfiles" / "tools" / "hello@1.0.0.lock.json"
    place.parent.mkdir(parents=True)
    project.lockfile("tools/hello").rename(place)
    shadow(project)
    result = project.run("tools/hello")
    refused(result, "LockShadowedError")
    assert result.metadata["lockfile"] == str(place)


def test_another_version_in_the_same_space_is_not_a_shadow(project: Project) -> None:
    project.command("tools/hello", "/bin/echo", "new", version="2.0.0", space="system")
    refused(project.run("tools/hello"), "LockUpgradeError")


def test_a_corrupt_lockfile_of_another_version_stops_a_shadow(
    project: Project,
) -> None:
    lockfile = project.lockfile("tools/hello")
    lockfile.write_text("{ not json")
    shadow(project)
    message = refused(project.run("tools/hello"), "LockCorruptError")
    assert message.startswith(f"lockfile {lockfile}: ")


def test_a_lockfile_of_another_version_that_is_for_another_tool_is_refused(
    project: Project,
) -> None:
    lockfile = project.lockfile("tools/hello")
    document = json.loads(lockfile.read_text())
    document["root"]["tool_id"] = "tools/other"
    lockfile.write_text(json.dumps(document))
    shadow(project)
    assert refused(project.run("tools/hello"), "LockCorruptError") == (
        f"lockfile {lockfile} is for 'tools/other' 1.0.0, not for 'tools/hello' 1.0.0; "
        "delete it and run the tool again"
    )


def test_the_lockfiles_of_a_tool_are_not_those_of_its_neighbours(project: Project) -> None:
    for item_id in ("tools/hello@1", "tools/hello_too", "tools/deep/hello", "hello"):
        project.command(item_id, "/bin/true")
        assert project.run(item_id).success
    lockfiles = LockfileResolver(project.context)
    for item_id in ("tools/hello", "tools/hello@1", "hello"):
        found = lockfiles.find(item_id)
        assert found is not None
        assert found.path == project.lockfile(item_id)
        assert lockfiles.paths_of(item_id) == [project.lockfile(item_id)]


def test_a_folder_of_lockfiles_that_cannot_be_listed_is_an_error(project: Project) -> None:
    folder = project.lockfile("tools/hello").parent
    project.lockfile("tools/hello").unlink()
    folder.rmdir()
    folder.symlink_to(folder)
    message = refused(project.run("tools/hello"), "LockCorruptError")
    assert message.endswith("; make it a file that you may read")


def wait_until_remembered(lockfile: Path) -> None:
    """Wait until the lockfile is old enough to be cached by an executor."""
    deadline = time.monotonic() + 10
    status = lockfile.stat()
    stamp = (status.st_dev, status.st_ino, status.st_mtime_ns, status.st_ctime_ns)
    while not is_settled(stamp):
        assert time.monotonic() < deadline, "the lockfile never became old enough"
        time.sleep(0.005)


def test_a_confirmed_lock_does_not_cover_a_shadow_by_short_id(
    tmp_path: Path,
) -> None:
    """In a warm executor: lock and pinned files are unchanged, but the chain is another."""
    project = Project(tmp_path)
    fields: dict[str, Any] = {
        "tool_type": "runtime",
        "executor_id": SUBPROCESS,
        "config": {"command": "/bin/echo"},
    }
    project.yaml("tools/hello", executor_id="echo_runtime")
    project.yaml("runtimes/echo_runtime", space="system", **fields)
    assert project.run("tools/hello").success
    wait_until_remembered(project.lockfile("tools/hello"))

    async def call() -> tuple[list[ExecutionResult], Path]:
        async with project.executor() as executor:
            results = [await executor.execute("tools/hello") for _ in range(2)]
            path = project.yaml("other/echo_runtime", **fields)
            return [*results, await executor.execute("tools/hello")], path

    (first, second, third), path = asyncio.run(call())
    assert first.success, first.error
    assert second.success, second.error
    assert refused(third, "LockShadowedError") == (
        f"lockfile {project.lockfile('tools/hello')} pins tools/hello, runtimes/echo_runtime, but "
        f"the chain now leads through {path}, which it does not pin; remove that file, or accept "
        "it with: rye lock --update tools/hello"
    )


def lead_out_of_the_project(folder: Path, elsewhere: Path) -> None:
    """The files of the folder are no longer reachable by their full ids."""
    folder.rename(elsewhere)
    folder.symlink_to(elsewhere)


@pytest.mark.parametrize("version", ["1.0.0", "2.0.0"])
def test_a_short_id_does_not_bypass_an_unreachable_pinned_tool(
    tmp_path: Path, version: str
) -> None:
    project = Project(tmp_path)
    project.command("tools/hello", "/bin/echo", "pinned")
    assert project.run("hello").success
    pinned = integrity_of(project, "tools/hello")
    path = project.command("tools/hello", "/bin/echo", "other", space="user", version=version)
    lead_out_of_the_project(project.folder("project") / "tools" / "tools", tmp_path / "away")
    found = integrity_of(project, "hello")
    assert (
        f"'tools/hello' is pinned in the project space ({pinned}), but {path} of the user space "
        f"({found}) now takes its place; remove the file that shadows it"
    ) in refused(project.run("hello"), "LockShadowedError")


@pytest.mark.parametrize("word", ["pinned", "other"])
def test_a_short_id_does_not_bypass_an_unreachable_pinned_runtime(
    tmp_path: Path, word: str
) -> None:
    """Not even with the same content: it is in another space."""
    project = Project(tmp_path)
    project.yaml("tools/hello", executor_id="echo_runtime")
    project.command("runtimes/echo_runtime", "/bin/echo", "pinned", tool_type="runtime")
    assert project.run("tools/hello").success
    path = project.command(
        "runtimes/echo_runtime", "/bin/echo", word, space="user", tool_type="runtime"
    )
    lead_out_of_the_project(project.folder("project") / "tools" / "runtimes", tmp_path / "away")
    assert refused(project.run("tools/hello", frozen=True), "LockShadowedError") == (
        f"lockfile {project.lockfile('tools/hello')} pins tools/hello, runtimes/echo_runtime, but "
        f"the chain now leads through {path}, which it does not pin; remove that file, or accept "
        "it with: rye lock --update tools/hello"
    )
