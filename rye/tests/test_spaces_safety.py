"""Threats: links that lead out of a space, things that are no files, folders that are closed."""

import os
import socket
from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemNotFoundError, UnsafePathError
from rye_spaces import PYTHON_ITEM, SpaceRooms, still_leads_to


@pytest.fixture
def rooms(tmp_path: Path) -> SpaceRooms:
    return SpaceRooms(tmp_path)


@pytest.fixture
def outside(rooms: SpaceRooms) -> Path:
    folder = rooms.folder / "outside"
    folder.mkdir()
    (folder / "tool.py").write_text(PYTHON_ITEM, encoding="utf-8")
    return folder


def assert_leads_out(rooms: SpaceRooms, item_id: str, path: Path) -> None:
    with pytest.raises(UnsafePathError) as caught:
        rooms.resolver().resolve(item_id)
    assert str(caught.value) == (
        f"{path}: a symbolic link points outside {rooms.folder / 'project' / '.ai'}; "
        "put the file itself into the space"
    )


def test_a_link_to_a_file_outside_the_space_is_refused(rooms: SpaceRooms, outside: Path) -> None:
    rooms.write("project", "a/other.py")
    link = rooms.tools("project") / "a/tool.py"
    link.symlink_to(outside / "tool.py")
    assert_leads_out(rooms, "a/tool", link)


def test_a_linked_folder_outside_the_space_is_refused(rooms: SpaceRooms, outside: Path) -> None:
    rooms.write("project", "other.py")
    (rooms.tools("project") / "a").symlink_to(outside)
    assert_leads_out(rooms, "a/tool", rooms.tools("project") / "a/tool.py")


def test_tools_itself_cannot_be_a_link_out_of_the_space(rooms: SpaceRooms, outside: Path) -> None:
    rooms.tools("project").parent.mkdir(parents=True)
    rooms.tools("project").symlink_to(outside)
    with pytest.raises(UnsafePathError):
        rooms.resolver().resolve("tool")


def test_a_folder_beside_the_space_that_begins_with_its_name_is_outside(rooms: SpaceRooms) -> None:
    rooms.write("project", "other.py")
    twin = rooms.folder / "project" / ".ai-twin"
    twin.mkdir()
    (twin / "tool.py").write_text(PYTHON_ITEM, encoding="utf-8")
    link = rooms.tools("project") / "tool.py"
    link.symlink_to(twin / "tool.py")
    assert_leads_out(rooms, "tool", link)


def test_a_link_from_one_space_into_another_is_refused(rooms: SpaceRooms) -> None:
    theirs = rooms.write("user", "a/tool.py")
    rooms.write("project", "a/other.py")
    link = rooms.tools("project") / "a/tool.py"
    link.symlink_to(theirs)
    assert_leads_out(rooms, "a/tool", link)


def test_links_inside_the_space_are_followed(rooms: SpaceRooms) -> None:
    target = rooms.write("project", "a/real.py")
    link = target.with_name("tool.py")
    link.symlink_to("real.py")
    (rooms.tools("project") / "b").symlink_to("a")
    assert rooms.resolver().resolve("a/tool").path == link
    assert rooms.resolver().resolve("b/real").path == rooms.tools("project") / "b/real.py"


def test_a_space_whose_root_is_a_link_is_a_space(rooms: SpaceRooms) -> None:
    rooms.write("elsewhere", "a/tool.py")
    (rooms.folder / "user").mkdir()
    (rooms.folder / "user" / ".ai").symlink_to(rooms.folder / "elsewhere" / ".ai")
    assert rooms.resolver().resolve("a/tool").path == rooms.tools("user") / "a/tool.py"


@pytest.mark.parametrize("target", ["nowhere.py", "tool.py"])
def test_a_dangling_or_circular_link_is_refused_and_not_passed_over(
    rooms: SpaceRooms, target: str
) -> None:
    rooms.write("system", "a/tool.py")
    rooms.write("project", "a/other.py")
    link = rooms.tools("project") / "a/tool.py"
    link.symlink_to(target)
    with pytest.raises(UnsafePathError) as caught:
        rooms.resolver().resolve("a/tool")
    assert str(caught.value) == (
        f"{link}: is not a regular file; remove it, or replace it with a regular file"
    )


def test_a_fifo_or_a_socket_as_an_item_is_refused_without_waiting(rooms: SpaceRooms) -> None:
    rooms.write("system", "a/tool.py")
    folder = rooms.write("project", "a/other.py").parent
    os.mkfifo(folder / "tool.py")
    with pytest.raises(UnsafePathError, match="is not a regular file; remove it"):
        rooms.resolver().resolve("a/tool")
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # the name of a socket may have at most 108 bytes
        server.bind("sock.py")
        with pytest.raises(UnsafePathError, match="is not a regular file; remove it"):
            rooms.resolver().resolve("a/sock")


def test_a_link_that_is_swapped_in_for_a_folder_is_noticed(
    rooms: SpaceRooms, outside: Path
) -> None:
    folder = rooms.write("project", "a/tool.py").parent
    rooms.settle()
    resolver = rooms.resolver()
    found = resolver.resolve("a/tool")
    folder.rename(rooms.folder / "moved")
    folder.symlink_to(rooms.folder / "moved")
    assert not still_leads_to(resolver, found)
    with pytest.raises(UnsafePathError):
        resolver.resolve("a/tool")


def test_the_list_ends_in_spite_of_links_in_a_circle_and_leaves_out_what_leads_out(
    rooms: SpaceRooms, outside: Path
) -> None:
    folder = rooms.write("project", "a/tool.py").parent
    (folder / "again").symlink_to(folder)
    (folder / "out").symlink_to(outside)
    (folder / "leak.py").symlink_to(outside / "tool.py")
    resolver = rooms.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/tool"]
    assert [type(error) for error in resolver.conflicts()] == [UnsafePathError]


def test_files_whose_names_are_no_ids_are_not_listed(rooms: SpaceRooms) -> None:
    rooms.write("project", "good.py")
    for name in ("back\\slash.py", "new\nline.py", " blank.py", ".hidden/tool.py"):
        rooms.write("project", name)
    os.close(os.open(os.fsencode(rooms.tools("project")) + b"/\xff.py", os.O_CREAT))
    assert [each.item_id for each in rooms.resolver().iter_items()] == ["good"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search any folder")
def test_a_folder_that_may_not_be_searched_is_an_error_and_not_an_absence(
    rooms: SpaceRooms,
) -> None:
    rooms.write("system", "a/b/tool.py")
    closed = rooms.write("project", "a/b/other.py").parent.parent
    closed.chmod(0)
    try:
        with pytest.raises(UnsafePathError, match=r"cannot be searched \(permission denied\)"):
            rooms.resolver().resolve("a/b/tool")
    finally:
        closed.chmod(0o755)


def test_a_circle_of_linked_folders_is_an_error_and_not_an_absence(rooms: SpaceRooms) -> None:
    rooms.write("system", "a/tool.py")
    rooms.write("project", "other.py")
    loop = rooms.tools("project") / "a"
    loop.symlink_to("a")
    with pytest.raises(UnsafePathError) as caught:
        rooms.resolver().resolve("a/tool")
    assert str(caught.value) == (
        f"{loop}: cannot be searched (too many levels of symbolic links); "
        "check its permissions and its links"
    )


def test_a_file_where_a_folder_is_asked_for_is_an_absence(rooms: SpaceRooms) -> None:
    rooms.write("project", "a")
    with pytest.raises(ItemNotFoundError):
        rooms.resolver().resolve("a/tool")
    path = rooms.write("system", "a/tool.py")
    assert rooms.resolver().resolve("a/tool").path == path


def test_a_case_that_differs_does_not_make_a_twin(rooms: SpaceRooms) -> None:
    path = rooms.write("project", "a/tool.py")
    rooms.write("project", "a/Tool.py")
    assert rooms.resolver().resolve("a/tool").path == path


def test_two_unlisted_languages_of_one_stem_are_ambiguous(rooms: SpaceRooms) -> None:
    first = rooms.write("project", "a/tool.odd", "")
    second = rooms.write("project", "a/tool.odder", "")
    with pytest.raises(AmbiguousIdError) as caught:
        rooms.resolver().resolve("a/tool")
    assert str(caught.value) == f"'a/tool' is both {first} and {second}; remove or rename one"
