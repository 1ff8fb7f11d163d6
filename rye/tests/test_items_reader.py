"""Reading an item: a regular file of bounded size inside its space."""

import os
import threading
from pathlib import Path

import pytest
from rye.errors import ItemFormatError, ItemNotFoundError, UnsafePathError
from rye.items.reader import MAX_ITEM_BYTES, read_item
from scarce_descriptors import descriptors_left


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "space" / ".ai"
    (folder / "tools").mkdir(parents=True)
    return folder


def test_the_bytes_are_returned_unchanged(root: Path) -> None:
    path = root / "tools" / "a.py"
    path.write_bytes(b"\xef\xbb\xbf\r\n\xff\0")
    file = read_item(path, root)
    assert (file.path, file.content) == (path, b"\xef\xbb\xbf\r\n\xff\0")
    assert "\\xff" not in repr(file)


def test_the_largest_item_is_read_and_one_byte_more_is_refused(root: Path) -> None:
    path = root / "tools" / "a.py"
    path.write_bytes(b"#" * MAX_ITEM_BYTES)
    assert len(read_item(path, root).content) == MAX_ITEM_BYTES
    path.write_bytes(b"#" * (MAX_ITEM_BYTES + 1))
    with pytest.raises(ItemFormatError) as caught:
        read_item(path, root)
    assert str(caught.value) == (
        f"{path}: is larger than 1048576 bytes; move large data into another file"
    )


def test_a_link_to_a_file_outside_is_refused(root: Path) -> None:
    secret = root.parent / "secret"
    secret.write_text("x")
    path = root / "tools" / "a.py"
    path.symlink_to(secret)
    with pytest.raises(UnsafePathError) as caught:
        read_item(path, root)
    assert str(caught.value) == (
        f"{path}: a symbolic link points outside {root}; put the file itself into the space"
    )


def test_a_path_through_a_linked_folder_is_refused(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.py").write_text("x")
    (root / "tools" / "b").symlink_to(outside)
    with pytest.raises(UnsafePathError, match="points outside"):
        read_item(root / "tools" / "b" / "a.py", root)


def test_a_path_with_dots_that_leaves_the_space_is_refused(root: Path) -> None:
    (root.parent / "a.py").write_text("x")
    with pytest.raises(UnsafePathError, match="points outside"):
        read_item(root / "tools" / ".." / ".." / "a.py", root)


def test_links_inside_the_space_and_a_linked_root_are_followed(root: Path) -> None:
    (root / "tools" / "real.py").write_text("x")
    (root / "tools" / "a.py").symlink_to("real.py")
    assert read_item(root / "tools" / "a.py", root).content == b"x"
    alias = root.parent.parent / "alias"
    alias.symlink_to(root)
    assert read_item(alias / "tools" / "real.py", alias).content == b"x"


def test_a_fifo_is_refused_without_waiting_for_a_writer(root: Path) -> None:
    path = root / "tools" / "a.py"
    os.mkfifo(path)
    caught: list[BaseException] = []

    def read() -> None:
        try:
            read_item(path, root)
        except UnsafePathError as error:
            caught.append(error)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    reader.join(timeout=30)
    assert [str(error) for error in caught] == [
        f"{path}: is not a regular file; remove it, or replace it with a regular file"
    ]


@pytest.mark.parametrize("kind", ["folder", "device"])
def test_a_path_that_is_not_a_regular_file_is_refused(root: Path, kind: str) -> None:
    path = root / "tools" / "a.py"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to("/dev/zero")
    with pytest.raises(UnsafePathError, match="is not a regular file; remove it"):
        read_item(path, root)


def test_a_missing_file_is_not_found(root: Path) -> None:
    path = root / "tools" / "a.py"
    with pytest.raises(ItemNotFoundError) as caught:
        read_item(path, root)
    assert str(caught.value) == f"{path}: no such file; restore it, or search for it again"


def test_a_circular_link_is_refused(root: Path) -> None:
    path = root / "tools" / "a.py"
    path.symlink_to("a.py")
    with pytest.raises(UnsafePathError, match="is not a regular file"):
        read_item(path, root)


def test_a_path_with_a_nul_is_a_typed_error(root: Path) -> None:
    with pytest.raises(ItemFormatError, match=r"cannot be read \(embedded null byte\)"):
        read_item(Path(f"{root}/tools/a\0.py"), root)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read any file")
def test_a_file_without_read_permission_is_reported(root: Path) -> None:
    path = root / "tools" / "a.py"
    path.write_text("x")
    path.chmod(0)
    with pytest.raises(ItemFormatError) as caught:
        read_item(path, root)
    assert str(caught.value) == (
        f"{path}: cannot be read (permission denied); check its permissions and the disk"
    )


def test_too_many_open_files_is_reported_as_such(root: Path) -> None:
    path = root / "tools" / "a.py"
    path.write_text("x")
    error: Exception | None = None
    with descriptors_left(0):
        try:
            read_item(path, root)
        except ItemFormatError as caught:
            error = caught
    assert str(error) == (
        f"{path}: cannot be read (too many open files); close files, or raise the limit for open "
        "files (ulimit -n)"
    )
    assert read_item(path, root).content == b"x"


def test_no_descriptor_is_left_open(root: Path) -> None:
    path = root / "tools" / "a.py"
    path.write_text("x")
    os.mkfifo(root / "tools" / "f.py")
    before = len(list(Path("/proc/self/fd").iterdir()))
    read_item(path, root)
    with pytest.raises(UnsafePathError):
        read_item(root / "tools" / "f.py", root)
    assert len(list(Path("/proc/self/fd").iterdir())) == before
