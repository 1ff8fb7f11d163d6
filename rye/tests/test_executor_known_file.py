"""A second look at a file must not be led to other bytes, nor be held up."""

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


def test_the_same_bytes_are_known(known: KnownFile) -> None:
    assert known.is_unchanged()


def test_a_link_in_the_place_of_the_file_is_not_followed(known: KnownFile, tmp_path: Path) -> None:
    """Even to the same bytes: where it leads could have others as soon as they are run."""
    known.file.path.rename(tmp_path / "elsewhere.py")
    known.file.path.symlink_to(tmp_path / "elsewhere.py")
    assert not known.is_unchanged()


@pytest.mark.parametrize("content", [b"x = 2\n", b"x = 1\n#", b"x = 1", b""])
def test_other_bytes_are_not(known: KnownFile, content: bytes) -> None:
    known.file.path.write_bytes(content)
    assert not known.is_unchanged()


def test_a_fifo_does_not_hold_the_call_up(known: KnownFile) -> None:
    known.file.path.unlink()
    os.mkfifo(known.file.path)
    assert not known.is_unchanged()


def test_what_is_gone_or_a_folder_is_not(known: KnownFile) -> None:
    known.file.path.unlink()
    assert not known.is_unchanged()
    known.file.path.mkdir()
    assert not known.is_unchanged()


def test_a_link_in_the_place_of_a_folder_above_is_not_followed(tmp_path: Path) -> None:
    """The file and its folder are the same ones, but they lie outside of the space now."""
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


def test_a_file_that_passed_below_one_root_has_not_passed_below_another(tmp_path: Path) -> None:
    path = tmp_path / "tool.py"
    path.write_bytes(b"x = 1\n")
    verified = VerifiedFiles()
    verified.keep(read_item(path, tmp_path), tmp_path, "stamp", "hash")
    assert verified.recall(str(path), tmp_path, "stamp") == "hash"
    assert verified.recall(str(path), tmp_path / "other", "stamp") is None
    assert verified.recall(str(path), tmp_path, "another stamp") is None
