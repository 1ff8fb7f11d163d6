"""Short ids in a space of many folders: any change in any folder is noticed at once."""

import os
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from rye.errors import UnsafePathError
from rye.spaces import index
from rye.spaces.folders import Listing, list_folder
from rye.spaces.resolver import Resolver
from rye_spaces import TemporarySpaces, has_same_answer

FOLDERS = 24


@pytest.fixture
def spaces(tmp_path: Path) -> TemporarySpaces:
    spaces = TemporarySpaces(tmp_path)
    spaces.write("system", "a/lint.py")
    for number in range(FOLDERS):
        spaces.write("project", f"f{number}/deep/tool{number}.py")
    spaces.settle()
    return spaces


@pytest.fixture
def read_folders(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that an index has read."""
    seen: list[str] = []

    def recording(folder: str) -> Listing:
        seen.append(folder)
        return list_folder(folder)

    monkeypatch.setattr(index, "list_folder", recording)
    return seen


def warm_resolver(spaces: TemporarySpaces) -> Resolver:
    resolver = spaces.resolver()
    for _ in range(3):
        resolver.resolve("lint")
    return resolver


def test_a_warm_short_id_reads_no_folder_again(
    spaces: TemporarySpaces, read_folders: list[str]
) -> None:
    resolver = warm_resolver(spaces)
    assert len(read_folders) > FOLDERS
    read_folders.clear()
    assert resolver.resolve("lint").space.name == "system"
    assert read_folders == []


def test_only_the_folder_that_changed_is_read_again(
    spaces: TemporarySpaces, read_folders: list[str]
) -> None:
    resolver = warm_resolver(spaces)
    read_folders.clear()
    path = spaces.write("project", "f3/other.py")
    resolver.resolve("lint")
    assert set(read_folders) == {str(path.parent)}


def add_file(tools: Path) -> None:
    (tools / "f3" / "lint.py").write_text("")


def add_file_in_deep_folder(tools: Path) -> None:
    (tools / "f4" / "deep" / "lint.py").write_text("")


def add_file_in_new_folders(tools: Path) -> None:
    (tools / "x" / "y").mkdir(parents=True)
    (tools / "x" / "y" / "lint.py").write_text("")


def rename_file(tools: Path) -> None:
    (tools / "f5" / "deep" / "tool5.py").rename(tools / "f5" / "lint.py")


def add_symlink(tools: Path) -> None:
    (tools / "f6" / "lint.py").symlink_to(tools / "f7" / "deep" / "tool7.py")


def add_hard_link(tools: Path) -> None:
    (tools / "f6" / "lint.py").hardlink_to(tools / "f7" / "deep" / "tool7.py")


def move_folder_in(tools: Path) -> None:
    elsewhere = tools.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lint.py").write_text("")
    elsewhere.rename(tools / "f8" / "came")


def replace_tools_folder(tools: Path) -> None:
    tools.rename(tools.with_name("before"))
    (tools / "n").mkdir(parents=True)
    (tools / "n" / "lint.py").write_text("")


def replace_project(tools: Path) -> None:
    project = tools.parent.parent
    project.rename(project.with_name("before"))
    (tools / "n").mkdir(parents=True)
    (tools / "n" / "lint.py").write_text("")


@pytest.mark.parametrize(
    "change",
    [
        add_file,
        add_file_in_deep_folder,
        add_file_in_new_folders,
        rename_file,
        add_symlink,
        add_hard_link,
        move_folder_in,
        replace_tools_folder,
        replace_project,
    ],
)
def test_a_file_that_shadows_another_is_noticed_at_once(
    spaces: TemporarySpaces, change: Callable[[Path], None]
) -> None:
    resolver = warm_resolver(spaces)
    change(spaces.tools("project"))
    assert resolver.resolve("lint").space.name == "project"


def test_a_file_that_appears_and_disappears_is_noticed_every_time(spaces: TemporarySpaces) -> None:
    resolver = warm_resolver(spaces)
    for _ in range(3):
        mine = spaces.write("project", "f1/lint.py")
        assert resolver.resolve("lint").path == mine
        mine.unlink()
        assert resolver.resolve("lint").space.name == "system"


def test_a_change_is_noticed_again_after_earlier_changes(spaces: TemporarySpaces) -> None:
    resolver = warm_resolver(spaces)
    for name in ("f1/other.py", "f2/another.py"):
        spaces.write("project", name)
        resolver.resolve("lint")
    spaces.settle()
    found = resolver.resolve("lint")
    assert has_same_answer(resolver, found)
    spaces.write("project", "f2/lint.py")
    assert not has_same_answer(resolver, found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search any folder")
def test_a_folder_that_becomes_unsearchable_is_reported(spaces: TemporarySpaces) -> None:
    resolver = warm_resolver(spaces)
    folder = spaces.tools("project") / "f2"
    folder.chmod(0)
    try:
        with pytest.raises(UnsafePathError, match="cannot be searched"):
            resolver.resolve("lint")
    finally:
        folder.chmod(0o755)


def test_threads_that_share_a_resolver_never_list_a_removed_item(
    spaces: TemporarySpaces, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A slow reader of the old state must not leave it behind as the current state."""
    tree = index.SpaceIndex(spaces.resolver().spaces[0])
    gone = spaces.write("project", "f1/gone.py")
    spaces.settle()
    old = tree.refresh()
    reading, go_on = threading.Event(), threading.Event()

    def slow(text: str) -> bool:
        reading.set()
        assert go_on.wait(10)
        return True

    monkeypatch.setattr(index, "_is_id", slow)
    reader = threading.Thread(target=lambda: old.items)
    reader.start()
    assert reading.wait(10)
    monkeypatch.undo()
    gone.unlink()
    spaces.settle()
    assert tree.refresh() is not old
    go_on.set()
    reader.join()
    assert "f1/gone" in old.items
    assert "f1/gone" not in tree.refresh().items
