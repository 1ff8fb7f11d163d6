"""What the catalogue says, and what it remembers of it."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
from rye.catalogue.cache_file import MAX_FILES, CacheFile
from rye.catalogue.catalogue import Catalogue
from rye.catalogue.record import read_record, stamp_of_file
from rye.errors import AmbiguousIdError, ItemNotFoundError, NoMetadataError
from rye.spaces.folders import is_settled, stamp_of
from rye.spaces.model import Resolution
from rye.spaces.reserved import primitive_ids
from rye.spaces.resolver import Resolver
from rye_project import Project

HELLO = """\
version: "1.2.0"
executor_id: rye/core/primitives/subprocess
tool_type: shell
category: greetings
description: says hello
config_schema: {type: object, properties: {name: {type: string}}}
annotations: {read_only: true}
"""


@pytest.fixture
def project(tmp_path: Path) -> Project:
    return Project(tmp_path)


def write(project: Project, name: str, text: str = HELLO, space: str = "project") -> Path:
    return project.tool(name, text, space=space, signed=False)  # type: ignore[arg-type] # a name of one


def ids(project: Project) -> list[str]:
    return [each.item_id for each in Catalogue(project.context).summaries()]


def settle(project: Project) -> None:
    """Returns once nothing is so young that it is not remembered."""
    deadline = time.monotonic() + 10
    spaces = [folder.parent / ".ai" for folder in (project.path / "x", project.user / "x")]
    while True:
        paths = [path for space in spaces for path in (space / "tools").rglob("*")]
        folders = [str(path) for path in paths if path.is_dir()]
        folders += [str(space / "tools") for space in spaces]
        stamps = [stamp_of(folder) for folder in folders]
        stamps += [(stamp_of_file(str(path)) or (0,) * 5)[:4] for path in paths]
        if all(is_settled(stamp) for stamp in stamps):
            return
        assert time.monotonic() < deadline, "the files never became old enough"
        time.sleep(0.005)


def cache_file(project: Project) -> CacheFile:
    context = project.context
    return CacheFile(context.user_space, Resolver(context).spaces, primitive_ids())


def indexed(project: Project) -> CacheFile:
    """An index on disk that nothing speaks against."""
    settle(project)
    Catalogue(project.context).summaries()
    return cache_file(project)


def plant(project: Project, old: bytes = b"says hello", new: bytes = b"from index") -> CacheFile:
    """An index that can be told from the files."""
    file = indexed(project)
    content = file.read()
    assert content is not None
    file.write(content.replace(old, new))
    return file


def description(project: Project, item_id: str = "team/hello") -> str:
    entries = {each.item_id: each for each in Catalogue(project.context).entries()}
    return entries[item_id].description


def test_an_entry_has_all_that_the_file_says(project: Project) -> None:
    path = write(project, "team/hello.yaml")
    (entry,) = Catalogue(project.context).entries()
    assert entry._asdict() == {
        "item_id": "team/hello",
        "space": "project",
        "bundle": "",
        "path": str(path),
        "version": "1.2.0",
        "tool_type": "shell",
        "executor_id": "rye/core/primitives/subprocess",
        "category": "greetings",
        "description": "says hello",
        "schema": {"type": "object", "properties": {"name": {"type": "string"}}},
        "annotations": {"read_only": True},
        "fault": "",
    }


def test_what_is_read_from_the_index_equals_what_is_read_from_files(project: Project) -> None:
    write(project, "team/hello.yaml")
    write(project, "broken.yaml", "executor_id: [\n")
    settle(project)
    first = Catalogue(project.context).entries()
    assert Catalogue(project.context).entries() == first
    assert len(first) == 2


def test_helpers_and_libraries_are_left_out(project: Project) -> None:
    write(project, "team/hello.yaml")
    write(project, "team/helper.py", "def greet() -> None: ...\n")
    write(project, "team/lib.yaml", HELLO.replace("shell", "library"))
    assert ids(project) == ["team/hello"]
    settle(project)
    assert ids(project) == ["team/hello"]
    assert ids(project) == ["team/hello"]


def test_runtimes_and_primitives_are_marked(project: Project) -> None:
    write(project, "team/hello.yaml")
    write(project, "team/runner.yaml", HELLO.replace("shell", "runtime"))
    summaries = Catalogue(project.context).summaries()
    assert [(each.item_id, each.is_tool) for each in summaries] == [
        ("team/hello", True),
        ("team/runner", False),
    ]


def test_the_id_leads_to_the_project_before_the_user(project: Project) -> None:
    write(project, "hello.yaml", HELLO.replace("says", "shouts"))
    write(project, "hello.yaml", space="user")
    (entry,) = Catalogue(project.context).entries()
    assert (entry.space, entry.description) == ("project", "shouts hello")


def test_a_file_that_cannot_be_parsed_is_an_entry_with_a_fault(project: Project) -> None:
    path = write(project, "broken.yaml", "version: 1.0\nexecutor_id: x\n")
    write(project, "team/hello.yaml")
    broken, hello = Catalogue(project.context).entries()
    assert broken.item_id == "broken"
    assert broken.fault == (
        f"{path}:1: expected text in quotes, got a number in 'version'; correct it and sign again"
    )
    assert not hello.fault


@pytest.mark.parametrize("choices", ["null", "5", "{a: 1}", "[1, null, {}]"])
def test_a_schema_that_makes_no_sense_hides_no_other_tool(project: Project, choices: str) -> None:
    odd = HELLO.replace("{type: string}", f"{{enum: {choices}}}")
    write(project, "odd.yaml", odd)
    write(project, "team/hello.yaml")
    assert ids(project) == ["odd", "team/hello"]


def test_two_files_of_one_id_are_told_and_hide_nothing_else(project: Project) -> None:
    write(project, "team/hello.yaml")
    first = write(project, "twice.yaml")
    second = write(project, "twice.py", "")
    catalogue = Catalogue(project.context)
    assert [each.item_id for each in catalogue.summaries()] == ["team/hello"]
    assert catalogue.problems() == (f"'twice' is both {second} and {first}; remove or rename one",)
    settle(project)
    assert Catalogue(project.context).problems() == catalogue.problems()


def test_reading_creates_nothing_but_the_index(project: Project) -> None:
    write(project, "team/hello.yaml")
    before = set(project.path.rglob("*"))
    Catalogue(project.context).entries()
    assert set(project.path.rglob("*")) == before


class TestOneEntry:
    def test_a_short_id_is_enough(self, project: Project) -> None:
        write(project, "team/deep/hello.yaml")
        assert Catalogue(project.context).entry("hello").item_id == "team/deep/hello"

    def test_it_reads_no_other_file_and_makes_no_index(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        assert Catalogue(project.context).entry("team/hello").version == "1.2.0"
        assert not cache_file(project).path.exists()

    def test_an_id_that_nothing_bears(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        with pytest.raises(ItemNotFoundError, match=r"there is no item 'team/helo'; did you mean"):
            Catalogue(project.context).entry("team/helo")

    def test_a_short_id_that_two_bear(self, project: Project) -> None:
        write(project, "a/hello.yaml")
        write(project, "b/hello.yaml")
        with pytest.raises(AmbiguousIdError, match="short id 'hello' is borne by 'a/hello'"):
            Catalogue(project.context).entry("hello")

    def test_a_helper_is_no_item(self, project: Project) -> None:
        write(project, "helper.py", "x = 1\n")
        with pytest.raises(NoMetadataError, match="is not a tool: it has no metadata"):
            Catalogue(project.context).entry("helper")

    def test_a_library_can_be_asked_for(self, project: Project) -> None:
        write(project, "lib.yaml", HELLO.replace("shell", "library"))
        assert Catalogue(project.context).entry("lib").tool_type == "library"

    def test_a_primitive_without_a_file(self, project: Project) -> None:
        entry = Catalogue(project.context).entry("subprocess")
        assert (entry.item_id, entry.path) == ("rye/core/primitives/subprocess", "")
        assert not entry.is_tool

    def test_a_fault_is_no_exception(self, project: Project) -> None:
        path = write(project, "broken.py", "def (:\n")
        assert Catalogue(project.context).entry("broken").fault.startswith(f"{path}:1: ")


class TestChanges:
    def test_what_did_not_change_is_not_read_again(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        plant(project)
        assert description(project) == "from index"

    def test_an_edit_in_place_is_noticed(self, project: Project) -> None:
        path = write(project, "team/hello.yaml")
        write(project, "other.yaml", HELLO.replace("says", "asks"))
        plant(project, b"asks hello", b"from index")
        folder = stamp_of(str(path.parent))
        with path.open("r+") as file:
            file.write(HELLO.replace("1.2.0", "9.9.9"))
        assert stamp_of(str(path.parent)) == folder, "the edit must not show in the folder"
        entries = Catalogue(project.context).entries()
        assert [(each.item_id, each.version, each.description) for each in entries] == [
            ("other", "1.2.0", "from index"),
            ("team/hello", "9.9.9", "says hello"),
        ]

    def test_an_edit_that_keeps_size_and_mtime_is_noticed(self, project: Project) -> None:
        path = write(project, "team/hello.yaml")
        indexed(project)
        status = path.stat()
        path.write_text(HELLO.replace("says", "asks"))
        os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
        assert path.stat().st_size == status.st_size
        assert description(project) == "asks hello"

    def test_a_new_file_is_noticed_and_the_others_are_kept(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        plant(project)
        write(project, "new/one.yaml")
        assert ids(project) == ["new/one", "team/hello"]
        assert description(project) == "from index"

    def test_a_removed_file_is_noticed(self, project: Project) -> None:
        path = write(project, "team/hello.yaml")
        write(project, "other.yaml")
        indexed(project)
        path.unlink()
        assert ids(project) == ["other"]

    def test_a_shadow_is_noticed(self, project: Project) -> None:
        write(project, "team/hello.yaml", space="user")
        plant(project)
        write(project, "team/hello.yaml", HELLO.replace("says", "asks"))
        assert description(project) == "asks hello"

    def test_a_link_whose_target_goes_is_told(self, project: Project) -> None:
        target = write(project, "team/hello.yaml")
        (target.parent.parent / "alias.yaml").symlink_to(target)
        indexed(project)
        assert ids(project) == ["alias", "team/hello"]
        target.unlink()
        catalogue = Catalogue(project.context)
        assert catalogue.summaries() == ()
        assert "alias.yaml: is not a plain file" in catalogue.problems()[0]

    def test_one_catalogue_sees_changes_between_its_answers(self, project: Project) -> None:
        path = write(project, "team/hello.yaml")
        settle(project)
        catalogue = Catalogue(project.context)
        assert catalogue.entries() is catalogue.entries()
        path.write_text(HELLO.replace("says", "asks"))
        assert catalogue.entries()[0].description == "asks hello"

    def test_who_watches_sees_only_what_is_read(self, project: Project) -> None:
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

    def test_a_file_just_written_is_not_remembered(self, project: Project) -> None:
        path = write(project, "team/hello.yaml")
        resolution = Resolver(project.context).resolve("team/hello")
        deadline = time.monotonic() + 10
        while True:
            os.utime(path)
            young = read_record(resolution)
            # Only if the machine stood still in between is the file old already.
            if young is not None and young.stamp is None:
                break
            assert time.monotonic() < deadline, "a file just written was remembered"
        settle(project)
        old = read_record(resolution)
        assert old is not None
        assert old.stamp == stamp_of_file(str(path))

    def test_a_file_stamped_in_the_future_is_never_remembered(self, project: Project) -> None:
        path = write(project, "team/hello.yaml")
        stamp = stamp_of_file(str(path))
        assert stamp is not None
        assert not is_settled(stamp[:4], now_ns=stamp[3] - 1)
        assert not is_settled(stamp[:4], now_ns=stamp[3] + 1_000_000)


class TestTheIndexOnDisk:
    def test_it_is_private(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        file = indexed(project)
        assert file.path.stat().st_mode & 0o777 == 0o600
        assert file.folder.stat().st_mode & 0o777 == 0o700
        assert file.folder.is_relative_to(project.user / ".ai" / "cache")

    @pytest.mark.parametrize(
        "spoil",
        [
            lambda data: b"",
            lambda data: data[: len(data) // 2],
            lambda data: data.replace(b"from index", b"flipped!!!"),
            lambda data: b"\xff" * len(data),
            lambda data: data.replace(b'"0.1.0"', b'"0.0.9"', 1),
        ],
        ids=["empty", "cut", "flipped", "noise", "of another version"],
    )
    def test_a_spoilt_one_only_costs_time(self, project: Project, spoil: object) -> None:
        write(project, "team/hello.yaml")
        file = plant(project)
        file.path.write_bytes(spoil(file.path.read_bytes()))  # type: ignore[operator] # one of the above
        file.path.chmod(0o600)
        assert description(project) == "says hello"
        assert file.read() is not None, "it was written anew"

    @pytest.mark.parametrize("content", [b"", b"[]", b"[1, 2]\n[3]\n", b"[[], []]\n[[1, 2, 3]]\n"])
    def test_one_of_another_shape_only_costs_time(self, project: Project, content: bytes) -> None:
        write(project, "team/hello.yaml")
        indexed(project).write(content)
        assert description(project) == "says hello"

    def test_one_that_others_may_write_is_not_read(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        file = plant(project)
        file.path.chmod(0o620)
        assert description(project) == "says hello"

    def test_one_in_a_folder_that_others_may_enter_is_not_read(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        file = plant(project)
        file.folder.chmod(0o755)
        assert description(project) == "says hello"

    def test_one_below_a_folder_that_others_may_write_to_is_not_read(
        self, project: Project
    ) -> None:
        write(project, "team/hello.yaml")
        file = plant(project)
        file.folder.parent.chmod(0o777)
        assert description(project) == "says hello"

    @pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
    def test_one_of_another_user_is_not_read(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        file = plant(project)
        os.chown(file.path, 12345, 12345)
        assert description(project) == "says hello"

    def test_a_link_in_its_place_is_not_followed(self, project: Project, tmp_path: Path) -> None:
        write(project, "team/hello.yaml")
        file = plant(project)
        elsewhere = file.path.rename(tmp_path / "elsewhere")
        content = elsewhere.read_bytes()
        file.path.symlink_to(elsewhere)
        assert description(project) == "says hello"
        assert elsewhere.read_bytes() == content

    def test_a_folder_that_is_a_link_is_not_written_to(
        self, project: Project, tmp_path: Path
    ) -> None:
        write(project, "team/hello.yaml")
        other = tmp_path / "other"
        other.mkdir(mode=0o700)
        (project.user / ".ai" / "cache").mkdir()
        (project.user / ".ai" / "cache" / "catalogue").symlink_to(other)
        assert description(project) == "says hello"
        assert list(other.iterdir()) == []

    def test_a_fifo_in_its_place_does_not_hang(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        file = indexed(project)
        file.path.unlink()
        os.mkfifo(file.path, 0o600)
        assert description(project) == "says hello"

    def test_without_a_user_space_none_is_made(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        project.user.rename(project.user.with_name("gone"))
        assert description(project) == "says hello"
        assert not project.user.exists()

    def test_a_place_that_cannot_be_written_costs_only_time(self, project: Project) -> None:
        write(project, "team/hello.yaml")
        (project.user / ".ai" / "cache").write_text("not a folder")
        assert description(project) == "says hello"

    def test_those_of_forgotten_projects_do_not_pile_up(self, project: Project) -> None:
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

    def test_a_description_that_changed_hands_stays_with_its_project(self, tmp_path: Path) -> None:
        one, other = Project(tmp_path / "one"), Project(tmp_path / "other")
        other.user = one.user
        write(one, "team/hello.yaml")
        write(other, "team/hello.yaml", HELLO.replace("says", "asks"))
        indexed(one)
        assert description(other) == "asks hello"
        assert description(one) == "says hello"
