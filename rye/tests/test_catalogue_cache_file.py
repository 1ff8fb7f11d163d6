"""The index file: private, ignored if it is invalid, and bounded in number."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from catalogue_project import HELLO, description, indexed, plant, write
from rye.catalogue.cache_file import MAX_FILES
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_the_index_file_is_private(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = indexed(project)
    assert file.path.stat().st_mode & 0o777 == 0o600
    assert file.folder.stat().st_mode & 0o777 == 0o700
    assert file.folder.is_relative_to(project.user / ".ai" / "cache")


@pytest.mark.parametrize(
    "corrupt",
    [
        lambda data: b"",
        lambda data: data[: len(data) // 2],
        lambda data: data.replace(b"from index", b"flipped!!!"),
        lambda data: b"\xff" * len(data),
        lambda data: data.replace(b'"0.1.0"', b'"0.0.9"', 1),
    ],
    ids=["empty", "truncated", "changed", "noise", "other version"],
)
def test_a_corrupt_index_is_ignored_and_replaced(project: Project, corrupt: object) -> None:
    write(project, "team/hello.yaml")
    file = plant(project)
    file.path.write_bytes(corrupt(file.path.read_bytes()))  # type: ignore[operator] # a lambda from above
    file.path.chmod(0o600)
    assert description(project) == "says hello"
    assert file.read() is not None, "it was written again"


@pytest.mark.parametrize("content", [b"", b"[]", b"[1, 2]\n[3]\n", b"[[], []]\n[[1, 2, 3]]\n"])
def test_an_index_of_another_shape_is_ignored(project: Project, content: bytes) -> None:
    write(project, "team/hello.yaml")
    indexed(project).write(content)
    assert description(project) == "says hello"


def test_an_index_that_others_may_write_is_not_read(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = plant(project)
    file.path.chmod(0o620)
    assert description(project) == "says hello"


def test_an_index_in_a_folder_that_others_may_enter_is_not_read(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = plant(project)
    file.folder.chmod(0o755)
    assert description(project) == "says hello"


def test_an_index_below_a_folder_that_others_may_write_to_is_not_read(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = plant(project)
    file.folder.parent.chmod(0o777)
    assert description(project) == "says hello"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can change the owner")
def test_an_index_of_another_user_is_not_read(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = plant(project)
    os.chown(file.path, 12345, 12345)
    assert description(project) == "says hello"


def test_a_link_instead_of_the_index_is_not_followed(project: Project, tmp_path: Path) -> None:
    write(project, "team/hello.yaml")
    file = plant(project)
    elsewhere = file.path.rename(tmp_path / "elsewhere")
    content = elsewhere.read_bytes()
    file.path.symlink_to(elsewhere)
    assert description(project) == "says hello"
    assert elsewhere.read_bytes() == content


def test_a_folder_that_is_a_link_is_not_written_to(project: Project, tmp_path: Path) -> None:
    write(project, "team/hello.yaml")
    other = tmp_path / "other"
    other.mkdir(mode=0o700)
    (project.user / ".ai" / "cache").mkdir()
    (project.user / ".ai" / "cache" / "catalogue").symlink_to(other)
    assert description(project) == "says hello"
    assert list(other.iterdir()) == []


def test_a_fifo_instead_of_the_index_does_not_block(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = indexed(project)
    file.path.unlink()
    os.mkfifo(file.path, 0o600)
    assert description(project) == "says hello"


def test_a_missing_user_space_is_not_created(project: Project) -> None:
    write(project, "team/hello.yaml")
    project.user.rename(project.user.with_name("moved"))
    assert description(project) == "says hello"
    assert not project.user.exists()


def test_a_folder_that_cannot_be_created_is_ignored(project: Project) -> None:
    write(project, "team/hello.yaml")
    (project.user / ".ai" / "cache").write_text("not a folder")
    assert description(project) == "says hello"


def test_the_oldest_index_files_are_removed(project: Project) -> None:
    write(project, "team/hello.yaml")
    file = indexed(project)
    for number in range(MAX_FILES + 5):
        old = file.folder / f"{number}.index"
        old.touch()
        os.utime(old, (number, number))
    file.write(b"")
    left = {path.name for path in file.folder.iterdir()}
    assert len(left) == MAX_FILES
    assert file.path.name in left
    assert "0.index" not in left


def test_projects_of_one_user_do_not_share_an_index(tmp_path: Path) -> None:
    one, other = Project(tmp_path / "one"), Project(tmp_path / "other")
    other.user = one.user
    write(one, "team/hello.yaml")
    write(other, "team/hello.yaml", HELLO.replace("says", "asks"))
    indexed(one)
    assert description(other) == "asks hello"
    assert description(one) == "says hello"
