"""Bounded reads: no blocking, and never more than the limit, whatever is at the path."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from lilux.files.bounded_read import FileTooLargeError, NotRegularFileError, read_bounded


@pytest.mark.parametrize("size", [0, 1, 9, 10])
def test_a_file_within_the_limit_is_read_whole(tmp_path: Path, size: int) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * size)
    assert read_bounded(path, 10) == b"x" * size


def test_a_file_above_the_limit_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 11)
    with pytest.raises(FileTooLargeError, match=r"^more than 10 bytes$"):
        read_bounded(path, 10)


@pytest.mark.parametrize("grown_to", [5, 150_000, 200_000, 300_000])
def test_a_file_that_grows_or_shrinks_while_it_is_read_stays_within_the_limit(
    tmp_path: Path, grown_to: int
) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"x" * 10)

    def change(_found: os.stat_result) -> None:
        path.write_bytes(b"y" * grown_to)

    if grown_to > 200_000:
        with pytest.raises(FileTooLargeError, match=r"^more than 200000 bytes$"):
            read_bounded(path, 200_000, check=change)
    else:
        assert read_bounded(path, 200_000, check=change) == b"y" * grown_to


def test_a_file_that_reports_size_zero_is_read() -> None:
    status = Path("/proc/self/status")
    assert status.stat().st_size == 0
    assert read_bounded(status, 65536).startswith(b"Name:")
    with pytest.raises(FileTooLargeError, match=r"^more than 10 bytes$"):
        read_bounded(status, 10)


@pytest.mark.parametrize("make", [os.mkdir, os.mkfifo])
def test_a_path_that_is_not_a_regular_file_is_refused_without_blocking(
    tmp_path: Path, make: Callable[[Path], None]
) -> None:
    path = tmp_path / "thing"
    make(path)
    with pytest.raises(NotRegularFileError) as caught:
        read_bounded(path, 10)
    assert (caught.value.strerror, caught.value.filename) == ("Not a regular file", str(path))


def test_a_link_is_followed_only_if_allowed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / "file")
    assert read_bounded(link, 10) == b"x"
    with pytest.raises(OSError, match="Too many levels of symbolic links"):
        read_bounded(link, 10, follow_links=False)


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_a_refused_file_is_closed(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"x")

    def refuse(_found: os.stat_result) -> None:
        raise ValueError("not this one")

    before = open_descriptors()
    for _ in range(3):
        with pytest.raises(ValueError, match=r"^not this one$"):
            read_bounded(tmp_path / "file", 10, check=refuse)
    assert open_descriptors() == before
