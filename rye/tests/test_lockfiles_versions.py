"""One pin per tool: other versions are accepted by an update, which leaves one lockfile."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from rye.errors import LockLeftoverError
from rye.executor.locks.file import LockfileResolver
from rye.executor.locks.folder import Changing
from rye_console import Console
from rye_project import Project, refused
from versioned_tool import TOOL, add, leave_behind, lockfiles, with_a_pinned_tool


@pytest.fixture
def console(tmp_path: Path) -> Console:
    return with_a_pinned_tool(tmp_path)


def test_a_newer_version_is_an_upgrade_that_must_be_accepted(console: Console) -> None:
    add(console.project, "1.10.0")
    message = refused(console.project.run(TOOL), "LockUpgradeError")
    assert f"'{TOOL}' 1.10.0 is newer than the pinned 1.1.0" in message
    assert message.endswith(f"): an upgrade; accept it with: rye lock --update {TOOL}")


def test_a_version_that_has_no_order_is_a_change(console: Console) -> None:
    add(console.project, "nightly")
    message = refused(console.project.run(TOOL), "LockUpgradeError")
    assert f"'{TOOL}' nightly is another version than the pinned 1.1.0" in message


def test_an_unsigned_older_version_is_tampering(console: Console) -> None:
    path = add(console.project, "1.0.0")
    path.write_text(path.read_text().partition("\n")[2])
    refused(console.project.run(TOOL), "LockTamperedError")


def test_updating_replaces_the_lockfile_of_the_other_version(console: Console) -> None:
    add(console.project, "1.0.0")
    done = console("lock", "--update", TOOL)
    assert done.code == 0, done.stderr
    assert f"  {TOOL}: 1.1.0 " in done.stdout
    assert lockfiles(console.project) == ["hello@1.0.0.lock.json"]
    assert console.project.run(TOOL, frozen=True).success


def test_the_fix_in_the_message_removes_the_leftovers(console: Console) -> None:
    leave_behind(console)
    assert console("lock", TOOL).code == 5
    assert console("lock", "--update", TOOL).code == 0
    assert lockfiles(console.project) == ["hello@1.0.0.lock.json"]
    assert console.project.run(TOOL, frozen=True).success


def test_similar_names_are_not_leftovers(tmp_path: Path) -> None:
    project = Project(tmp_path)
    names = ("tools/hello", "tools/hello@1", "tools/hello@1@2", "tools/hell", "tools/h[e]llo")
    for item_id in names:
        add(project, "1.0.0", item_id)
        assert project.run(item_id).success
    for item_id in names:
        result = project.run(item_id, frozen=True)
        assert result.success, result.error


def test_a_first_run_overtaken_by_another_version_leaves_one_lockfile(tmp_path: Path) -> None:
    project = Project(tmp_path)
    lockfiles_of = LockfileResolver(project.context)
    chains = {}
    for version in ("1.0.0", "1.1.0"):
        add(project, version)
        assert project.run(TOOL).success
        chains[version] = lockfiles_of.find(TOOL)
        project.lockfile(TOOL, version).unlink()
    first, second = chains.values()
    assert first is not None
    assert second is not None
    lockfiles_of.save_lockfile(first.lockfile)
    with pytest.raises(FileExistsError):
        lockfiles_of.save_lockfile(second.lockfile)
    assert lockfiles(project) == ["hello@1.0.0.lock.json"]


def test_many_updates_and_calls_at_once_never_see_two_lockfiles(console: Console) -> None:
    """Two processes switch between two versions; this one reads the lock all the time."""
    project = console.project
    resolver = LockfileResolver(project.context)
    new = resolver.find(TOOL)
    add(project, "1.0.0")
    assert console("lock", "--update", TOOL).code == 0
    old = resolver.find(TOOL)
    assert new is not None
    assert old is not None
    script = textwrap.dedent(
        f"""
        import sys
        from pathlib import Path
        from rye.context import Context
        from rye.executor.locks.file import LockfileResolver
        from lilux.primitives.lockfile import LockfileManager
        root, user = Path({str(project.path)!r}), Path({str(project.user)!r})
        context = Context(project_path=root, user_space=user, system_space=user, environ={{}})
        resolver = LockfileResolver(context, spaces=())
        locks = [LockfileManager().load(Path(path)) for path in sys.argv[1:]]
        for turn in range(200):
            resolver.replace_lockfile(locks[turn % 2])
        """
    )
    copies = [project.path / "old", project.path / "new"]
    for copy, lock in zip(copies, (old, new), strict=True):
        copy.write_bytes(b"")
        resolver._manager.save(lock.lockfile, copy)
    writers = [
        subprocess.Popen([sys.executable, "-c", script, *map(str, order)])
        for order in (copies, copies[::-1])
    ]
    reads = 0
    while any(writer.poll() is None for writer in writers):
        assert resolver.find(TOOL) is not None
        reads += 1
    assert [writer.wait() for writer in writers] == [0, 0]
    assert reads > 10
    assert len(lockfiles(project)) == 1


def test_a_stopped_update_does_not_block_calls_forever(
    console: Console, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rye.executor.locks.folder._READER_PATIENCE", 0.05)
    leave_behind(console)
    folder = console.project.lockfile(TOOL).parent
    with Changing(str(folder)), pytest.raises(LockLeftoverError):
        LockfileResolver(console.project.context).find(TOOL)
