"""Threats: links to the outside, items that are not regular files, unsearchable folders."""

import os
import socket
from pathlib import Path

import pytest
from rye.errors import AmbiguousIdError, ItemNotFoundError, UnsafePathError
from rye_spaces import PYTHON_ITEM, TemporarySpaces, has_same_answer


@pytest.fixture
def spaces(tmp_path: Path) -> TemporarySpaces:
    return TemporarySpaces(tmp_path)


@pytest.fixture
def outside(spaces: TemporarySpaces) -> Path:
    folder = spaces.folder / "outside"
    folder.mkdir()
    (folder / "tool.py").write_text(PYTHON_ITEM, encoding="utf-8")
    return folder


def assert_refused_as_outside(spaces: TemporarySpaces, item_id: str, path: Path) -> None:
    with pytest.raises(UnsafePathError) as caught:
        spaces.resolver().resolve(item_id)
    assert str(caught.value) == (
        f"{path}: a symbolic link points outside {spaces.folder / 'project' / '.ai'}; "
        "put the file itself into the space"
    )


def test_a_link_to_a_file_outside_the_space_is_refused(
    spaces: TemporarySpaces, outside: Path
) -> None:
    spaces.write("project", "a/other.py")
    link = spaces.tools("project") / "a/tool.py"
    link.symlink_to(outside / "tool.py")
    assert_refused_as_outside(spaces, "a/tool", link)


def test_a_linked_folder_outside_the_space_is_refused(
    spaces: TemporarySpaces, outside: Path
) -> None:
    spaces.write("project", "other.py")
    (spaces.tools("project") / "a").symlink_to(outside)
    assert_refused_as_outside(spaces, "a/tool", spaces.tools("project") / "a/tool.py")


def test_tools_itself_cannot_be_a_link_out_of_the_space(
    spaces: TemporarySpaces, outside: Path
) -> None:
    spaces.tools("project").parent.mkdir(parents=True)
    spaces.tools("project").symlink_to(outside)
    with pytest.raises(UnsafePathError):
        spaces.resolver().resolve("tool")


def test_a_sibling_folder_whose_name_starts_with_that_of_the_space_is_outside(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("project", "other.py")
    twin = spaces.folder / "project" / ".ai-twin"
    twin.mkdir()
    (twin / "tool.py").write_text(PYTHON_ITEM, encoding="utf-8")
    link = spaces.tools("project") / "tool.py"
    link.symlink_to(twin / "tool.py")
    assert_refused_as_outside(spaces, "tool", link)


def test_a_link_from_one_space_into_another_is_refused(spaces: TemporarySpaces) -> None:
    theirs = spaces.write("user", "a/tool.py")
    spaces.write("project", "a/other.py")
    link = spaces.tools("project") / "a/tool.py"
    link.symlink_to(theirs)
    assert_refused_as_outside(spaces, "a/tool", link)


def test_links_inside_the_space_are_followed(spaces: TemporarySpaces) -> None:
    target = spaces.write("project", "a/real.py")
    link = target.with_name("tool.py")
    link.symlink_to("real.py")
    (spaces.tools("project") / "b").symlink_to("a")
    assert spaces.resolver().resolve("a/tool").path == link
    assert spaces.resolver().resolve("b/real").path == spaces.tools("project") / "b/real.py"


def test_the_root_of_a_space_may_be_a_link(spaces: TemporarySpaces) -> None:
    spaces.write("elsewhere", "a/tool.py")
    (spaces.folder / "user").mkdir()
    (spaces.folder / "user" / ".ai").symlink_to(spaces.folder / "elsewhere" / ".ai")
    assert spaces.resolver().resolve("a/tool").path == spaces.tools("user") / "a/tool.py"


@pytest.mark.parametrize("target", ["nowhere.py", "tool.py"])
def test_a_dangling_or_circular_link_is_refused_and_not_skipped(
    spaces: TemporarySpaces, target: str
) -> None:
    spaces.write("system", "a/tool.py")
    spaces.write("project", "a/other.py")
    link = spaces.tools("project") / "a/tool.py"
    link.symlink_to(target)
    with pytest.raises(UnsafePathError) as caught:
        spaces.resolver().resolve("a/tool")
    assert str(caught.value) == (
        f"{link}: is not a regular file; remove it, or replace it with a regular file"
    )


def test_a_fifo_or_a_socket_as_an_item_is_refused_without_blocking(spaces: TemporarySpaces) -> None:
    spaces.write("system", "a/tool.py")
    folder = spaces.write("project", "a/other.py").parent
    os.mkfifo(folder / "tool.py")
    with pytest.raises(UnsafePathError, match="is not a regular file; remove it"):
        spaces.resolver().resolve("a/tool")
    with socket.socket(socket.AF_UNIX) as server, pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)  # the path of a socket has at most 108 bytes
        server.bind("sock.py")
        with pytest.raises(UnsafePathError, match="is not a regular file; remove it"):
            spaces.resolver().resolve("a/sock")


def test_a_folder_that_is_replaced_with_a_link_is_noticed(
    spaces: TemporarySpaces, outside: Path
) -> None:
    folder = spaces.write("project", "a/tool.py").parent
    spaces.settle()
    resolver = spaces.resolver()
    found = resolver.resolve("a/tool")
    folder.rename(spaces.folder / "moved")
    folder.symlink_to(spaces.folder / "moved")
    assert not has_same_answer(resolver, found)
    with pytest.raises(UnsafePathError):
        resolver.resolve("a/tool")


def test_a_listing_ends_despite_circular_links_and_leaves_out_links_to_the_outside(
    spaces: TemporarySpaces, outside: Path
) -> None:
    folder = spaces.write("project", "a/tool.py").parent
    (folder / "again").symlink_to(folder)
    (folder / "out").symlink_to(outside)
    (folder / "leak.py").symlink_to(outside / "tool.py")
    resolver = spaces.resolver()
    assert [each.item_id for each in resolver.iter_items()] == ["a/tool"]
    assert [type(error) for error in resolver.conflicts()] == [UnsafePathError]


def test_files_without_a_valid_id_are_not_listed(spaces: TemporarySpaces) -> None:
    spaces.write("project", "good.py")
    for name in ("back\\slash.py", "new\nline.py", " blank.py", ".hidden/tool.py"):
        spaces.write("project", name)
    os.close(os.open(os.fsencode(spaces.tools("project")) + b"/\xff.py", os.O_CREAT))
    assert [each.item_id for each in spaces.resolver().iter_items()] == ["good"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may search any folder")
def test_an_unsearchable_folder_is_an_error_and_not_treated_as_missing(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("system", "a/b/tool.py")
    closed = spaces.write("project", "a/b/other.py").parent.parent
    closed.chmod(0)
    try:
        with pytest.raises(UnsafePathError, match=r"cannot be searched \(permission denied\)"):
            spaces.resolver().resolve("a/b/tool")
    finally:
        closed.chmod(0o755)


def test_circular_folder_links_are_an_error_and_not_treated_as_missing(
    spaces: TemporarySpaces,
) -> None:
    spaces.write("system", "a/tool.py")
    spaces.write("project", "other.py")
    loop = spaces.tools("project") / "a"
    loop.symlink_to("a")
    with pytest.raises(UnsafePathError) as caught:
        spaces.resolver().resolve("a/tool")
    assert str(caught.value) == (
        f"{loop}: cannot be searched (too many levels of symbolic links); "
        "check its permissions and its links"
    )


def test_a_file_in_place_of_a_folder_is_treated_as_missing(spaces: TemporarySpaces) -> None:
    spaces.write("project", "a")
    with pytest.raises(ItemNotFoundError):
        spaces.resolver().resolve("a/tool")
    path = spaces.write("system", "a/tool.py")
    assert spaces.resolver().resolve("a/tool").path == path


def test_a_file_that_differs_in_case_is_not_a_duplicate(spaces: TemporarySpaces) -> None:
    path = spaces.write("project", "a/tool.py")
    spaces.write("project", "a/Tool.py")
    assert spaces.resolver().resolve("a/tool").path == path


def test_two_unknown_extensions_of_one_stem_are_ambiguous(spaces: TemporarySpaces) -> None:
    first = spaces.write("project", "a/tool.odd", "")
    second = spaces.write("project", "a/tool.odder", "")
    with pytest.raises(AmbiguousIdError) as caught:
        spaces.resolver().resolve("a/tool")
    assert str(caught.value) == f"'a/tool' is both {first} and {second}; remove or rename one"
