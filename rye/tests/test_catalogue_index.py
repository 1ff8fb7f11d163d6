"""Which changes of files the index notices, and what it does not read again."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from catalogue_project import HELLO, description, ids, indexed, plant, settle, write
from rye.catalogue.catalogue import Catalogue
from rye.catalogue.index import read_record, stamp_of_file
from rye.spaces.folders import is_settled, stamp_of
from rye.spaces.model import Resolution
from rye.spaces.resolver import Resolver
from rye_project import Project


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def test_an_unchanged_file_is_not_read_again(project: Project) -> None:
    write(project, "team/hello.yaml")
    plant(project)
    assert description(project) == "from index"


def test_an_edit_in_place_is_noticed(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    write(project, "other.yaml", HELLO.replace("says", "asks"))
    plant(project, b"asks hello", b"from index")
    folder = stamp_of(str(path.parent))
    with path.open("r+") as file:
        file.write(HELLO.replace("1.2.0", "9.9.9"))
    assert stamp_of(str(path.parent)) == folder, "the edit must not change the stamp of the folder"
    entries = Catalogue(project.context).entries()
    assert [(each.item_id, each.version, each.description) for each in entries] == [
        ("other", "1.2.0", "from index"),
        ("team/hello", "9.9.9", "says hello"),
    ]


def test_an_edit_that_keeps_size_and_mtime_is_noticed(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    indexed(project)
    status = path.stat()
    path.write_text(HELLO.replace("says", "asks"))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size
    assert description(project) == "asks hello"


def test_a_new_file_is_noticed_and_the_others_are_kept(project: Project) -> None:
    write(project, "team/hello.yaml")
    plant(project)
    write(project, "new/one.yaml")
    assert ids(project) == ["new/one", "team/hello"]
    assert description(project) == "from index"


def test_a_removed_file_is_noticed(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    write(project, "other.yaml")
    indexed(project)
    path.unlink()
    assert ids(project) == ["other"]


def test_a_file_that_shadows_another_is_noticed(project: Project) -> None:
    write(project, "team/hello.yaml", space="user")
    plant(project)
    write(project, "team/hello.yaml", HELLO.replace("says", "asks"))
    assert description(project) == "asks hello"


def test_a_link_whose_target_is_removed_is_reported(project: Project) -> None:
    target = write(project, "team/hello.yaml")
    (target.parent.parent / "alias.yaml").symlink_to(target)
    indexed(project)
    assert ids(project) == ["alias", "team/hello"]
    target.unlink()
    catalogue = Catalogue(project.context)
    assert catalogue.summaries() == ()
    assert "alias.yaml: is not a regular file" in catalogue.problems()[0]


def test_a_catalogue_notices_changes_between_queries(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    settle(project)
    catalogue = Catalogue(project.context)
    assert catalogue.entries() is catalogue.entries()
    path.write_text(HELLO.replace("says", "asks"))
    assert catalogue.entries()[0].description == "asks hello"


def test_progress_shows_only_files_that_are_read(project: Project) -> None:
    seen: list[list[str]] = []

    def watch(elements: Sequence[Resolution], label: str) -> Sequence[Resolution]:
        seen.append([each.item_id for each in elements])
        return elements

    write(project, "team/hello.yaml")
    settle(project)
    Catalogue(project.context, watch=watch).summaries()
    write(project, "team/new.yaml")
    Catalogue(project.context, watch=watch).summaries()
    assert seen == [["team/hello"], ["team/new"]]


def test_a_file_just_written_is_not_remembered(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    resolution = Resolver(project.context).resolve("team/hello")
    deadline = time.monotonic() + 10
    while True:
        os.utime(path)
        young = read_record(resolution)
        # The stamp is set only if the machine paused for so long that the file has settled.
        if young is not None and young.stamp is None:
            break
        assert time.monotonic() < deadline, "a file just written got a stamp"
    settle(project)
    old = read_record(resolution)
    assert old is not None
    assert old.stamp == stamp_of_file(str(path))


def test_a_file_stamped_in_the_future_is_never_remembered(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    stamp = stamp_of_file(str(path))
    assert stamp is not None
    assert not is_settled(stamp[:4], now_ns=stamp[3] - 1)
    assert not is_settled(stamp[:4], now_ns=stamp[3] + 1_000_000)
