"""The disk cache: what is kept for the next process, and which entries are ignored."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from rye.cache.disk import FORMAT, MAX_ENTRY_BYTES, DiskCache
from rye.cache.writer import write_entries

from rye import __version__

DIGEST = "ab" * 32
VALUE = {"text": "é", "list": [1, 2.5, None, True], "nothing": {}}

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner of a file")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".ai" / "cache" / "items"


def home_of(folder: Path) -> Path:
    return folder.parents[2]


@pytest.fixture
def kept(folder: Path) -> Path:
    """The file of the only entry in a cache."""
    home_of(folder).mkdir()
    cache = DiskCache(folder)
    cache.keep("kind", DIGEST, VALUE)
    cache.flush()
    (entry,) = (folder / f"{__version__}-{FORMAT}").iterdir()
    return entry


def recall(folder: Path, kind: str = "kind", digest: str = DIGEST) -> Any:
    """Recall as a new process would."""
    return DiskCache(folder).recall(kind, digest)


def test_a_value_is_recalled_by_the_next_process(folder: Path, kept: Path) -> None:
    assert recall(folder) == VALUE


def test_another_kind_or_digest_recalls_nothing(folder: Path, kept: Path) -> None:
    assert recall(folder, kind="other") is None
    assert recall(folder, digest="cd" * 32) is None


def test_nothing_is_written_before_the_flush(folder: Path) -> None:
    home_of(folder).mkdir()
    DiskCache(folder).keep("kind", DIGEST, VALUE)
    assert not folder.exists()


def test_a_cache_without_a_folder_keeps_nothing() -> None:
    cache = DiskCache(None)
    cache.keep("kind", DIGEST, VALUE)
    cache.flush()
    assert cache.recall("kind", DIGEST) is None


def test_only_the_user_can_access_folders_and_entries_whatever_the_umask(folder: Path) -> None:
    home_of(folder).mkdir()
    before = os.umask(0)
    try:
        cache = DiskCache(folder)
        cache.keep("kind", DIGEST, VALUE)
        cache.flush()
    finally:
        os.umask(before)
    inner = folder / f"{__version__}-{FORMAT}"
    modes = {path.stat().st_mode & 0o777 for path in (folder, inner)}
    assert modes == {0o700}
    assert [path.stat().st_mode & 0o777 for path in inner.iterdir()] == [0o600]


class TestIgnoredEntries:
    @pytest.mark.parametrize(
        "damage",
        [
            lambda data: b"",
            lambda data: data[:-1],
            lambda data: data + b" ",
            lambda data: data.replace(b"text", b"test"),
            lambda data: data[:64],
            lambda data: b"0" * 64 + data[64:],
            lambda data: b"\xff" * 200,
        ],
    )
    def test_a_damaged_entry(self, folder: Path, kept: Path, damage: Any) -> None:
        kept.write_bytes(damage(kept.read_bytes()))
        assert recall(folder) is None

    def test_an_entry_swapped_for_another(self, folder: Path, kept: Path) -> None:
        other = DiskCache(folder)
        other.keep("kind", "cd" * 32, "other")
        other.flush()
        (second,) = [path for path in kept.parent.iterdir() if path != kept]
        second.replace(kept)
        assert recall(folder) is None

    def test_an_entry_of_another_version(
        self, folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rye.cache.disk.__version__", "9.9.9")
        assert recall(folder) is None
        # The folder may also have been renamed.
        kept.parent.rename(folder / f"9.9.9-{FORMAT}")
        assert recall(folder) is None

    def test_an_entry_of_another_format(
        self, folder: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rye.cache.disk.FORMAT", FORMAT + 1)
        kept.parent.rename(folder / f"{__version__}-{FORMAT + 1}")
        assert recall(folder) is None

    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
    def test_an_entry_that_others_can_read_or_write(
        self, folder: Path, kept: Path, mode: int
    ) -> None:
        kept.chmod(mode)
        assert recall(folder) is None

    @pytest.mark.parametrize("mode", [0o750, 0o705, 0o720, 0o702])
    def test_an_entry_in_a_folder_that_others_can_access(
        self, folder: Path, kept: Path, mode: int
    ) -> None:
        kept.parent.chmod(mode)
        assert recall(folder) is None

    @as_root
    def test_an_entry_of_another_user(self, folder: Path, kept: Path) -> None:
        os.chown(kept, 12345, -1)
        assert recall(folder) is None

    @as_root
    def test_an_entry_in_a_folder_of_another_user(self, folder: Path, kept: Path) -> None:
        os.chown(kept.parent, 12345, -1)
        assert recall(folder) is None

    def test_a_link_to_an_entry(self, folder: Path, kept: Path, tmp_path: Path) -> None:
        kept.rename(tmp_path / "elsewhere")
        kept.symlink_to(tmp_path / "elsewhere")
        assert recall(folder) is None

    def test_an_entry_in_a_linked_folder(self, folder: Path, kept: Path, tmp_path: Path) -> None:
        kept.parent.rename(tmp_path / "elsewhere")
        kept.parent.symlink_to(tmp_path / "elsewhere")
        assert recall(folder) is None

    @pytest.mark.parametrize("level", [1, 2, 3], ids=["items", "cache", ".ai"])
    @pytest.mark.parametrize("mode", [0o777, 0o702])
    def test_an_entry_below_a_folder_that_others_can_write(
        self, folder: Path, kept: Path, level: int, mode: int
    ) -> None:
        kept.parents[level].chmod(mode)
        assert recall(folder) is None

    @as_root
    @pytest.mark.parametrize("level", [1, 2, 3], ids=["items", "cache", ".ai"])
    def test_an_entry_below_a_folder_that_a_group_can_write(
        self, folder: Path, kept: Path, level: int
    ) -> None:
        os.chown(kept.parents[level], -1, 12345)
        kept.parents[level].chmod(0o770)
        assert recall(folder) is None

    @as_root
    @pytest.mark.parametrize("level", [1, 2, 3], ids=["items", "cache", ".ai"])
    def test_an_entry_below_a_folder_of_another_user(
        self, folder: Path, kept: Path, level: int
    ) -> None:
        os.chown(kept.parents[level], 12345, -1)
        assert recall(folder) is None

    @pytest.mark.parametrize("level", [1, 2], ids=["items", "cache"])
    def test_an_entry_below_a_linked_folder(
        self, folder: Path, kept: Path, tmp_path: Path, level: int
    ) -> None:
        kept.parents[level].rename(tmp_path / "elsewhere")
        kept.parents[level].symlink_to(tmp_path / "elsewhere")
        assert recall(folder) is None

    def test_a_fifo_does_not_block_the_reader(self, folder: Path, kept: Path) -> None:
        kept.unlink()
        os.mkfifo(kept, 0o600)
        assert recall(folder) is None

    def test_an_entry_that_is_too_large(self, folder: Path, kept: Path) -> None:
        kept.write_bytes(kept.read_bytes() + b" " * MAX_ENTRY_BYTES)
        assert recall(folder) is None


class TestNotKept:
    @pytest.mark.parametrize(
        "value",
        [{"a": (1, 2)}, {1: "a"}, float("nan"), b"bytes", object(), "x" * MAX_ENTRY_BYTES],
        ids=["tuple", "number as key", "nan", "bytes", "object", "too large"],
    )
    def test_a_value_that_json_would_change(self, folder: Path, value: Any) -> None:
        home_of(folder).mkdir()
        cache = DiskCache(folder)
        cache.keep("kind", DIGEST, value)
        cache.flush()
        assert not folder.exists()

    @as_root
    def test_a_value_in_the_home_of_another_user(self, folder: Path) -> None:
        home_of(folder).mkdir()
        os.chown(home_of(folder), 12345, -1)
        cache = DiskCache(folder)
        cache.keep("kind", DIGEST, VALUE)
        cache.flush()
        assert list(home_of(folder).iterdir()) == []

    def test_more_than_the_maximum_of_unwritten_values(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("rye.cache.disk.MAX_UNWRITTEN", 2)
        home_of(folder).mkdir()
        cache = DiskCache(folder)
        for number in range(3):
            cache.keep("kind", str(number), number)
        cache.flush()
        assert [recall(folder, digest=str(number)) for number in range(3)] == [0, 1, None]


class TestUnusableFolder:
    def test_a_file_in_place_of_the_folder_is_not_an_error(self, folder: Path) -> None:
        folder.parent.mkdir(parents=True)
        folder.write_text("in the way")
        cache = DiskCache(folder)
        cache.keep("kind", DIGEST, VALUE)
        cache.flush()
        assert recall(folder) is None
        assert folder.read_text() == "in the way"

    def test_a_folder_that_others_can_access_is_left_alone(self, folder: Path, kept: Path) -> None:
        kept.parent.chmod(0o755)
        cache = DiskCache(folder)
        cache.keep("kind", "cd" * 32, VALUE)
        cache.flush()
        assert list(kept.parent.iterdir()) == [kept]

    def test_a_folder_in_place_of_an_entry(self, folder: Path, kept: Path) -> None:
        kept.unlink()
        kept.mkdir(mode=0o700)
        cache = DiskCache(folder)
        cache.keep("kind", DIGEST, VALUE)
        cache.flush()
        assert recall(folder) is None


def test_the_older_half_is_removed_when_there_are_too_many_entries(tmp_path: Path) -> None:
    folder = tmp_path / "cache"
    for number in range(6):
        write_entries(str(folder), {f"{number}": b"x"}, 6)
        os.utime(folder / f"{number}", ns=(number, number))
    write_entries(str(folder), {"6": b"x"}, 6)
    assert sorted(path.name for path in folder.iterdir()) == ["3", "4", "5", "6"]


def test_versions_unused_for_a_month_are_removed(folder: Path) -> None:
    for name, age in (("0.0.1-1", 31), ("0.0.2-1", 29)):
        (folder / name).mkdir(parents=True, mode=0o700)
        (folder / name / "entry").write_text("x")
        then = (folder / name).stat().st_mtime - age * 24 * 3600
        os.utime(folder / name, (then, then))
    cache = DiskCache(folder)
    cache.keep("kind", DIGEST, VALUE)
    cache.flush()
    assert sorted(path.name for path in folder.iterdir()) == ["0.0.2-1", f"{__version__}-{FORMAT}"]


@pytest.mark.parametrize("mode", [0o700, 0o777], ids=["private", "writable by others"])
def test_a_linked_folder_is_not_removed_as_an_old_version(
    folder: Path, tmp_path: Path, mode: int
) -> None:
    folder.mkdir(parents=True)
    folder.chmod(mode)
    papers = tmp_path / "papers"
    papers.mkdir(mode=0o700)
    (papers / "letter").write_text("x")
    os.utime(papers, (0, 0))
    (folder / "0.0.1-1").symlink_to(papers)
    cache = DiskCache(folder)
    cache.keep("kind", DIGEST, VALUE)
    cache.flush()
    assert (papers / "letter").read_text() == "x"
    assert (recall(folder) == VALUE) is (mode == 0o700)


def test_a_linked_ai_folder_is_used(folder: Path, kept: Path, tmp_path: Path) -> None:
    """Many users keep their settings in a repository."""
    settings = folder.parents[1]
    settings.rename(tmp_path / "dotfiles")
    settings.symlink_to(tmp_path / "dotfiles")
    assert recall(folder) == VALUE


def test_an_entry_is_a_checksum_and_json(kept: Path) -> None:
    data = kept.read_bytes()
    assert json.loads(data[64:]) == VALUE
    assert len(kept.name) == 64
