"""Reading a known file again must not accept other bytes, and must not block."""

import os
from pathlib import Path

import pytest
from rye.executor.chain.known_files import KnownFile, VerifiedFiles
from rye.items.reader import read_item


@pytest.fixture
def known(tmp_path: Path) -> KnownFile:
    path = tmp_path / "tool.py"
    path.write_bytes(b"x = 1\n")
    return KnownFile.of(read_item(path, tmp_path))


def test_the_same_bytes_are_unchanged(known: KnownFile) -> None:
    assert known.is_unchanged()


def test_a_link_instead_of_the_file_is_a_change(known: KnownFile, tmp_path: Path) -> None:
    """Even to the same bytes: the target could change before it runs."""
    known.file.path.rename(tmp_path / "elsewhere.py")
    known.file.path.symlink_to(tmp_path / "elsewhere.py")
    assert not known.is_unchanged()


@pytest.mark.parametrize("content", [b"x = 2\n", b"x = 1\n#", b"x = 1", b""])
def test_other_bytes_are_a_change(known: KnownFile, content: bytes) -> None:
    known.file.path.write_bytes(content)
    assert not known.is_unchanged()


def test_a_fifo_does_not_block_the_call(known: KnownFile) -> None:
    known.file.path.unlink()
    os.mkfifo(known.file.path)
    assert not known.is_unchanged()


def test_a_missing_file_or_a_folder_is_a_change(known: KnownFile) -> None:
    known.file.path.unlink()
    assert not known.is_unchanged()
    known.file.path.mkdir()
    assert not known.is_unchanged()


def test_a_link_instead_of_a_parent_folder_is_a_change(tmp_path: Path) -> None:
    """File and folder are the same, but they are now outside of the space."""
    space = tmp_path / "space"
    path = space / "above" / "folder" / "tool.py"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"x = 1\n")
    known = KnownFile.of(read_item(path, space))
    assert known.is_unchanged()
    (space / "above").rename(tmp_path / "elsewhere")
    (space / "above").symlink_to(tmp_path / "elsewhere")
    assert path.read_bytes() == known.file.content
    assert not known.is_unchanged()


def test_a_file_verified_below_one_root_is_verified_again_below_another(tmp_path: Path) -> None:
    path = tmp_path / "tool.py"
    path.write_bytes(b"x = 1\n")
    verified = VerifiedFiles()
    verified.keep(read_item(path, tmp_path), tmp_path, "stamp", "hash")
    assert verified.recall(str(path), tmp_path, "stamp") == "hash"
    assert verified.recall(str(path), tmp_path / "other", "stamp") is None
    assert verified.recall(str(path), tmp_path, "another stamp") is None
