"""Where lockfiles are read and written, frozen mode, and many first runs at once."""

import asyncio
import json
import os
import shutil
import time
from pathlib import Path

import pytest
from lilux.primitives.lockfile import LockfileManager
from rye.errors import ItemIdError, RyeError, UnsafePathError
from rye.executor.locks.file import LockfileResolver
from rye.executor.run.result import ExecutionResult
from rye_project import SUBPROCESS, Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    project = Project(tmp_path)
    project.command("tools/hello", "/bin/echo", "hi")
    return project


def test_the_first_success_reports_its_lockfile(project: Project) -> None:
    result = project.run("tools/hello")
    path = project.lockfile("tools/hello")
    assert result.metadata["lockfile_created"] == str(path)
    assert path == project.path / ".ai" / "lockfiles" / "tools" / "hello@1.0.0.lock.json"
    assert path.is_file()
    assert [one.name for one in path.parent.iterdir()] == [path.name]


def test_a_failure_pins_nothing(project: Project) -> None:
    project.command("tools/fails", "/bin/false")
    assert not project.run("tools/fails").success
    assert not project.lockfile("tools/fails").exists()


def test_a_dry_run_pins_nothing(project: Project) -> None:
    assert project.run("tools/hello", dry_run=True).success
    assert not project.lockfile("tools/hello").exists()


def test_a_primitive_without_a_file_has_nothing_to_pin(project: Project) -> None:
    result = project.run(SUBPROCESS, {"command": "/bin/true"})
    assert result.success, result.error
    assert not (project.path / ".ai" / "lockfiles").exists()


def test_a_short_id_is_locked_under_the_full_one(project: Project) -> None:
    assert project.run("hello").success
    assert project.lockfile("tools/hello").is_file()


def test_a_tool_without_version_is_locked_as_zero(project: Project) -> None:
    project.command("tools/hello", "/bin/echo", version="")
    project.tool("tools/bare.yaml", f"executor_id: {SUBPROCESS}\nconfig: {{command: /bin/true}}\n")
    assert project.run("tools/bare").success
    assert project.lockfile("tools/bare", "0.0.0").is_file()


def test_a_version_cannot_leave_the_folder_of_lockfiles(project: Project) -> None:
    tool = project.command("tools/evil", "/bin/true", version="1/../../../../evil")
    assert project.run("tools/evil").error == (
        f"{tool}:3: expected a version like 1.0.0 in 'version'; correct it and sign again"
    )
    assert not list(project.path.parent.rglob("evil*.json"))
    with pytest.raises(RyeError) as caught:
        LockfileResolver(project.context).path_for("tools/evil", "1/../../../../evil")
    assert str(caught.value) == (
        "version '1/../../../../evil' of 'tools/evil' cannot be part of a file name; "
        "use letters, digits and . _ + ! - only, like 1.0.0"
    )


def test_lockfiles_are_read_in_project_then_user_then_system(project: Project) -> None:
    project.run("tools/hello")
    made = project.lockfile("tools/hello")
    resolver = LockfileResolver(project.context)
    places = []
    for space in ("system", "user", "project"):
        place = project.folder(space) / "lockfiles" / "tools" / made.name
        place.parent.mkdir(parents=True, exist_ok=True)
        if space != "project":
            shutil.copy(made, place)
        places.append(place)
    for place in reversed(places):
        found = resolver.find("tools/hello")
        assert found is not None
        assert found.path == place
        place.unlink()
    assert resolver.get_lockfile("tools/hello", "1.0.0") is None


def test_a_lockfile_of_the_user_applies_if_the_project_has_none(project: Project) -> None:
    project.run("tools/hello")
    place = project.user / ".ai" / "lockfiles" / "tools" / "hello@1.0.0.lock.json"
    place.parent.mkdir(parents=True)
    project.lockfile("tools/hello").rename(place)
    project.command("tools/hello", "/bin/echo", "changed")
    result = project.run("tools/hello")
    assert result.metadata["error_type"] == "LockUpgradeError"
    assert result.metadata["lockfile"] == str(place)


def test_frozen_mode_refuses_a_tool_without_a_lockfile(project: Project) -> None:
    result = project.run("tools/hello", frozen=True)
    assert result.metadata["error_type"] == "LockMissingError"
    assert result.error == (
        "'tools/hello' 1.0.0 has no lockfile, and frozen mode requires one; "
        "create and commit it: rye lock tools/hello"
    )
    assert result.metadata["lockfile"] == str(project.lockfile("tools/hello"))


def test_frozen_mode_checks_the_lock_even_with_locks_switched_off(project: Project) -> None:
    project.run("tools/hello")
    assert project.run("tools/hello", frozen=True).success
    project.lockfile("tools/hello").unlink()
    assert not project.run("tools/hello", frozen=True, use_lockfile=False).success


def test_many_first_runs_at_once_leave_one_valid_lockfile(project: Project) -> None:
    async def call() -> list[ExecutionResult]:
        async with project.executor() as one, project.executor() as other:
            calls = [each.execute("tools/hello") for each in (one, other) for _ in range(15)]
            return await asyncio.gather(*calls)

    results = asyncio.run(call())
    assert [result.error for result in results] == [None] * 30
    path = project.lockfile("tools/hello")
    assert [one.name for one in path.parent.iterdir()] == [path.name]
    LockfileManager().load(path)
    assert project.run("tools/hello", frozen=True).success


def test_a_run_overtaken_by_other_content_fails(project: Project) -> None:
    """While the tool sleeps, another run pins something else under the same version."""
    gate, ready = project.path / "gate", project.path / "ready"
    script = f"echo > {ready}; while [ ! -e {gate} ]; do sleep 0.01; done; echo done"
    project.command("tools/slow", "/bin/sh", "-c", script)

    async def call() -> ExecutionResult:
        async with project.executor() as executor:
            slow = asyncio.create_task(executor.execute("tools/slow"))
            deadline = asyncio.get_running_loop().time() + 15
            while not ready.exists() and asyncio.get_running_loop().time() < deadline:
                await asyncio.sleep(0.005)
            project.command("tools/slow", "/bin/echo", "other")
            assert (await executor.execute("tools/slow")).success
            gate.touch()
            return await slow

    result = asyncio.run(call())
    assert not result.success
    assert result.metadata["error_type"] == "LockUpgradeError"
    assert result.data["stdout"] == "done\n"
    assert result.error == (
        f"lockfile {project.lockfile('tools/slow')} was made by another run at the same time, "
        "and pins other content; run the tool again"
    )


def test_tools_of_a_read_only_project_run(project: Project) -> None:
    (project.path / ".ai" / "lockfiles").write_text("in the way")
    result = project.run("tools/hello")
    assert result.success
    assert "lockfiles" in result.metadata["lockfile_error"]


def test_no_lockfile_is_written_through_a_link_out_of_the_project(project: Project) -> None:
    elsewhere = project.path.parent / "elsewhere"
    elsewhere.mkdir()
    (project.path / ".ai" / "lockfiles").symlink_to(elsewhere)
    result = project.run("tools/hello")
    assert result.success
    assert "leads out of the project" in result.metadata["lockfile_error"]
    assert list(elsewhere.iterdir()) == []


def test_saving_never_replaces_a_lockfile(project: Project) -> None:
    project.run("tools/hello")
    path = project.lockfile("tools/hello")
    resolver = LockfileResolver(project.context)
    lockfile = resolver.get_lockfile("tools/hello", "1.0.0")
    assert lockfile is not None
    before = path.read_bytes()
    with pytest.raises(FileExistsError):
        resolver.save_lockfile(lockfile)
    assert path.read_bytes() == before
    assert [one.name for one in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize(
    ("item_id", "fault"),
    [
        ("../evil", "item id '../evil' has the part '..', which begins with a dot"),
        ("/etc/passwd", "item id '/etc/passwd' is an absolute path"),
        ("", "item id '' is empty"),
    ],
)
def test_an_id_cannot_leave_the_folder_of_lockfiles(
    project: Project, item_id: str, fault: str
) -> None:
    lockfiles = LockfileResolver(project.context)
    message = f"{fault}; write the path below .ai/tools/ without its extension, like rye/bash/bash"
    with pytest.raises(ItemIdError) as caught:
        lockfiles.get_lockfile(item_id, "1.0.0")
    assert str(caught.value) == message
    with pytest.raises(ItemIdError) as caught:
        lockfiles.find(item_id)
    assert str(caught.value) == message


def test_generated_at_has_a_time_zone(project: Project) -> None:
    project.run("tools/hello")
    from datetime import datetime

    stamp = json.loads(project.lockfile("tools/hello").read_text())["generated_at"]
    assert datetime.fromisoformat(stamp).tzinfo is not None


def test_an_unreadable_lockfile_is_an_error(project: Project) -> None:
    project.run("tools/hello")
    path = project.lockfile("tools/hello")
    path.unlink()
    os.mkfifo(path)
    result = project.run("tools/hello")
    assert result.metadata["error_type"] == "LockCorruptError"


def test_a_looping_link_instead_of_a_lockfile_is_an_error(project: Project) -> None:
    path = project.lockfile("tools/hello")
    path.parent.mkdir(parents=True)
    path.symlink_to(path)
    result = project.run("tools/hello")
    assert result.metadata["error_type"] == "LockCorruptError"
    assert result.error is not None
    assert result.error.startswith(f"lockfile {path}: cannot be read (")


def test_an_unsafe_folder_is_an_unsafe_path(project: Project) -> None:
    project.run("tools/hello")
    resolver = LockfileResolver(project.context)
    lockfile = resolver.get_lockfile("tools/hello", "1.0.0")
    assert lockfile is not None
    shutil.rmtree(project.path / ".ai" / "lockfiles")
    (project.path / ".ai" / "lockfiles").symlink_to(project.user)
    with pytest.raises(UnsafePathError, match=r"replace the symbolic link by a folder$"):
        resolver.save_lockfile(lockfile)


def test_a_lockfile_with_a_future_time_is_read_each_time(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As when the clock was set back: a later change could have the time of an earlier one."""
    assert project.run("tools/hello").success
    lockfiles = LockfileResolver(project.context)
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    first, second = (lockfiles.find("tools/hello") for _ in range(2))
    assert first == second
    assert first is not second
    monkeypatch.setattr(time, "time_ns", lambda: 2**62)
    first, second = (lockfiles.find("tools/hello") for _ in range(2))
    assert first is second
