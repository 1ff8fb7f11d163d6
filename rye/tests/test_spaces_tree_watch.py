"""Short ids in a space of many folders: asked of the system's own news of changes, not of each."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from rye.errors import UnsafePathError
from rye.spaces import index, tree_watch
from rye.spaces.folders import Stamp, stamp_of
from rye.spaces.resolver import Resolver
from rye_spaces import SpaceRooms, still_leads_to

FOLDERS = 3 * tree_watch.MIN_FOLDERS
CALLS_TO_WARM_UP = tree_watch.PATIENCE + 3

pytestmark = pytest.mark.skipif(
    not tree_watch._is_local("/"), reason="changes are told on local Linux file systems only"
)


@pytest.fixture
def rooms(tmp_path: Path) -> SpaceRooms:
    rooms = SpaceRooms(tmp_path)
    rooms.write("system", "a/lint.py")
    for number in range(FOLDERS):
        rooms.write("project", f"f{number}/deep/tool{number}.py")
    rooms.settle()
    return rooms


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The folders that an index looked at."""
    seen: list[str] = []

    def look(folder: str) -> Stamp:
        seen.append(folder)
        return stamp_of(folder)

    monkeypatch.setattr(index, "stamp_of", look)
    return seen


def warm_resolver(rooms: SpaceRooms) -> Resolver:
    resolver = rooms.resolver()
    for _ in range(CALLS_TO_WARM_UP):
        resolver.resolve("lint")
    return resolver


def in_project(rooms: SpaceRooms, looks: list[str]) -> list[str]:
    return [folder for folder in looks if folder.startswith(str(rooms.tools("project")))]


def test_a_warm_short_id_looks_at_no_folder_of_a_large_space(
    rooms: SpaceRooms, looks: list[str]
) -> None:
    resolver = warm_resolver(rooms)
    assert len(in_project(rooms, looks)) > FOLDERS
    looks.clear()
    found = resolver.resolve("lint")
    assert found.space.name == "system"
    assert in_project(rooms, looks) == []


def a_file(tools: Path) -> None:
    (tools / "f3" / "lint.py").write_text("")


def a_file_in_a_deep_folder(tools: Path) -> None:
    (tools / "f4" / "deep" / "lint.py").write_text("")


def a_file_in_new_folders(tools: Path) -> None:
    (tools / "x" / "y").mkdir(parents=True)
    (tools / "x" / "y" / "lint.py").write_text("")


def another_name(tools: Path) -> None:
    (tools / "f5" / "deep" / "tool5.py").rename(tools / "f5" / "lint.py")


def a_link_to_a_file(tools: Path) -> None:
    (tools / "f6" / "lint.py").symlink_to(tools / "f7" / "deep" / "tool7.py")


def a_second_name(tools: Path) -> None:
    (tools / "f6" / "lint.py").hardlink_to(tools / "f7" / "deep" / "tool7.py")


def a_folder_from_elsewhere(tools: Path) -> None:
    elsewhere = tools.parent.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "lint.py").write_text("")
    elsewhere.rename(tools / "f8" / "came")


def another_tree_in_its_place(tools: Path) -> None:
    tools.rename(tools.with_name("before"))
    (tools / "n").mkdir(parents=True)
    (tools / "n" / "lint.py").write_text("")


def another_project_in_its_place(tools: Path) -> None:
    project = tools.parent.parent
    project.rename(project.with_name("before"))
    (tools / "n").mkdir(parents=True)
    (tools / "n" / "lint.py").write_text("")


@pytest.mark.parametrize(
    "change",
    [
        a_file,
        a_file_in_a_deep_folder,
        a_file_in_new_folders,
        another_name,
        a_link_to_a_file,
        a_second_name,
        a_folder_from_elsewhere,
        another_tree_in_its_place,
        another_project_in_its_place,
    ],
)
def test_a_file_that_would_shadow_is_noticed_at_once(
    rooms: SpaceRooms, change: Callable[[Path], None]
) -> None:
    resolver = warm_resolver(rooms)
    change(rooms.tools("project"))
    assert resolver.resolve("lint").space.name == "project"


def test_what_comes_and_goes_is_noticed_every_time(rooms: SpaceRooms) -> None:
    resolver = warm_resolver(rooms)
    for _ in range(3):
        mine = rooms.write("project", "f1/lint.py")
        assert resolver.resolve("lint").path == mine
        mine.unlink()
        assert resolver.resolve("lint").space.name == "system"


def test_a_change_is_noticed_again_after_the_tree_came_to_rest(
    rooms: SpaceRooms, looks: list[str]
) -> None:
    resolver = warm_resolver(rooms)
    for name in ("f1/other.py", "f2/another.py"):
        rooms.write("project", name)
        resolver.resolve("lint")
    rooms.settle()
    for _ in range(CALLS_TO_WARM_UP):
        resolver.resolve("lint")
    looks.clear()
    found = resolver.resolve("lint")
    assert in_project(rooms, looks) == []
    rooms.write("project", "f2/lint.py")
    assert not still_leads_to(resolver, found)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search any folder")
def test_a_folder_that_may_not_be_searched_any_more_is_noticed(rooms: SpaceRooms) -> None:
    resolver = warm_resolver(rooms)
    folder = rooms.tools("project") / "f2"
    folder.chmod(0)
    try:
        with pytest.raises(UnsafePathError, match="cannot be searched"):
            resolver.resolve("lint")
    finally:
        folder.chmod(0o755)


def test_on_a_file_system_that_may_not_tell_each_folder_is_looked_at(
    rooms: SpaceRooms, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tree_watch, "_LOCAL", frozenset())
    resolver = warm_resolver(rooms)
    looks.clear()
    resolver.resolve("lint")
    assert len(in_project(rooms, looks)) > FOLDERS
    mine = rooms.write("project", "f1/lint.py")
    assert resolver.resolve("lint").path == mine


def watched_folders(tmp_path: Path) -> list[str]:
    folders = [tmp_path / f"f{number}" for number in range(tree_watch.MIN_FOLDERS)]
    for folder in folders:
        folder.mkdir()
    return [str(folder) for folder in (tmp_path, *folders)]


def test_a_watch_is_trusted_only_after_one_more_look_at_every_folder(tmp_path: Path) -> None:
    """What changed after the last look and before the watch was placed makes no event."""
    folders = watched_folders(tmp_path)
    watch = tree_watch.TreeWatch(str(tmp_path))
    for _ in range(tree_watch.PATIENCE):
        watch.after_calm(folders)
    assert not watch.is_quiet()
    watch.after_calm(folders)
    assert watch.is_quiet()
    Path(folders[3]).chmod(0o700)  # whether it may be searched
    assert not watch.is_quiet()


def test_a_tree_with_a_folder_of_another_device_is_not_watched(tmp_path: Path) -> None:
    folders = [*watched_folders(tmp_path), "/proc/self"]
    watch = tree_watch.TreeWatch(str(tmp_path))
    for _ in range(2 * tree_watch.PATIENCE):
        watch.after_calm(folders)
    assert not watch.is_quiet()


def test_a_process_that_asks_a_few_times_places_no_watch(rooms: SpaceRooms) -> None:
    before = _open_queues()
    resolver = rooms.resolver()
    for _ in range(tree_watch.PATIENCE):
        resolver.resolve("lint")
    assert _open_queues() == before


def test_the_watch_ends_with_its_resolver(rooms: SpaceRooms) -> None:
    before = _open_queues()
    resolver = warm_resolver(rooms)
    assert _open_queues() > before
    del resolver
    assert _open_queues() == before


_FORKED = """
import os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from rye_spaces import SpaceRooms
rooms = SpaceRooms(Path(sys.argv[2]))
resolver = rooms.resolver()
for _ in range(int(sys.argv[3])):
    resolver.resolve("lint")
mine = rooms.write("project", "f1/lint.py")
child = os.fork()
if child == 0:
    os._exit(0 if resolver.resolve("lint").path == mine else 1)
_, status = os.waitpid(child, 0)
assert status == 0, "the child saw the old answer"
assert resolver.resolve("lint").path == mine, "the child took the news away"
"""


def test_a_fork_does_not_take_the_news_away(rooms: SpaceRooms) -> None:
    testing = Path(sys.modules[SpaceRooms.__module__].__file__ or "").parent
    subprocess.run(
        [sys.executable, "-c", _FORKED, testing, rooms.folder, str(CALLS_TO_WARM_UP)], check=True
    )


def _open_queues() -> int:
    folder = Path("/proc/self/fd")
    links = [each for each in folder.iterdir() if each.is_symlink()]
    return sum("inotify" in str(each.readlink()) for each in links)
